#include "muster/formats/record_log.h"

#include <charconv>
#include <utility>

#include "absl/strings/str_format.h"

#include "muster/base/crc32c.h"
#include "muster/base/json_depth.h"

namespace muster::formats {
namespace {

constexpr size_t kChecksumDigits = 8;
constexpr int kMaxRecordDepth = 32;  // the depth that ParseJsonObject accepts
// The mark that follows the checksum of a group's first record.
constexpr char kBeginsGroup = ' ';
constexpr char kContinuesGroup = '+';

absl::StatusOr<std::string> PrintGroup(std::span<const Json> records) {
  std::string lines;
  for (const Json& record : records) {
    const std::string text = PrintJson(record);
    if (!record.is_object() || FindDeeperJson(text, kMaxRecordDepth) != text.npos) {
      return absl::InvalidArgumentError(
          StrCat("a record must be an object that nests at most ", kMaxRecordDepth, " deep"));
    }
    const char mark = lines.empty() ? kBeginsGroup : kContinuesGroup;
    absl::StrAppendFormat(&lines, "%08x%c%s\n", Crc32c(text), mark, text);
  }
  return lines;
}

// Returns the record of a line, or why the line has none.
absl::StatusOr<Json> ParseLine(std::string_view line) {
  const auto damaged = [](std::string_view why) { return absl::DataLossError(ToAbsl(why)); };
  uint32_t checksum = 0;
  if (line.size() <= kChecksumDigits ||
      (line[kChecksumDigits] != kBeginsGroup && line[kChecksumDigits] != kContinuesGroup)) {
    return damaged("has no checksum");
  }
  const char* const end = line.data() + kChecksumDigits;
  if (std::from_chars(line.data(), end, checksum, 16).ptr != end) return damaged("has no checksum");
  const std::string_view text = line.substr(kChecksumDigits + 1);
  if (Crc32c(text) != checksum) return damaged("does not fit its checksum");
  auto record = ParseJsonObject(text, "record");
  if (!record.ok()) return damaged(ToStd(record.status().message()));
  return record;
}

// Whether `rest`, whose first line cannot be read, can belong to the group that was being written
// when the machine stopped: blocks of it never reached the disk, and no later group follows.
bool IsTornGroup(std::string_view rest) {
  if (rest.find('\0') == rest.npos) return false;
  for (size_t end = rest.find('\n'); end != rest.npos; end = rest.find('\n', end + 1)) {
    const size_t mark = end + 1 + kChecksumDigits;
    if (mark < rest.size() && rest[mark] == kBeginsGroup) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<RecordLogContents> ParseRecordLog(std::string_view bytes, const std::string& name) {
  RecordLogContents log;
  while (log.bytes < bytes.size()) {
    const std::string_view rest = bytes.substr(log.bytes);
    const size_t end = rest.find('\n');
    if (end == rest.npos) break;
    auto record = ParseLine(rest.substr(0, end));
    if (!record.ok()) {
      if (IsTornGroup(rest)) break;
      return absl::DataLossError(
          StrCat(name, ": line ", log.records.size() + 1, " (from byte ", log.bytes, ") ",
                 ToStd(record.status().message()),
                 ": the file is damaged, and what follows cannot be trusted"));
    }
    log.records.push_back(*std::move(record));
    log.bytes += end + 1;
  }
  log.torn = log.bytes < bytes.size();
  return log;
}

absl::StatusOr<RecordLogContents> ReadRecordLog(io::FileSystem& files, const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string bytes, io::ReadFile(files, path, kMaxRecordLogBytes));
  return ParseRecordLog(bytes, path);
}

RecordLog::RecordLog(io::FileSystem& files, std::string path, const RecordLogContents& read)
    : files_(files),
      path_(std::move(path)),
      bytes_(read.bytes),
      has_sound_end_(read.bytes > 0 && !read.torn) {}

RecordLog::~RecordLog() {
  if (file_ != nullptr) (void)file_->Close();  // every group was synced
}

absl::Status RecordLog::Append(std::span<const Json> records) {
  MUSTER_ASSIGN_OR_RETURN(const std::string lines, PrintGroup(records));
  if (lines.size() > kMaxRecordLogBytes - bytes_) {
    return absl::ResourceExhaustedError(StrCat(path_, ": the log would have more than ",
                                               kMaxRecordLogBytes, " bytes and could not be read"));
  }
  if (lines.empty()) return absl::OkStatus();
  if (file_ == nullptr) MUSTER_RETURN_IF_ERROR(OpenAtEnd());
  absl::Status status = file_->Append(lines);
  if (status.ok()) status = file_->Sync();
  if (!status.ok()) {
    (void)file_->Close();
    file_ = nullptr;
    has_sound_end_ = false;
    return status;
  }
  bytes_ += lines.size();
  return absl::OkStatus();
}

absl::Status RecordLog::Replace(std::span<const Json> records) {
  MUSTER_ASSIGN_OR_RETURN(const std::string lines, PrintGroup(records));
  if (lines.size() > kMaxRecordLogBytes) {
    return absl::ResourceExhaustedError(
        StrCat(path_, ": the log would have ", lines.size(), " bytes and could not be read"));
  }
  return Write(lines);
}

// Opens the file for appending, after cutting off what follows bytes_.
absl::Status RecordLog::OpenAtEnd() {
  if (has_sound_end_) {
    MUSTER_ASSIGN_OR_RETURN(file_, files_.OpenForAppend(path_));
    return absl::OkStatus();
  }
  std::string contents;
  if (bytes_ > 0) {
    MUSTER_ASSIGN_OR_RETURN(contents, io::ReadFile(files_, path_, UINT64_MAX));
    if (contents.size() < bytes_) {
      return absl::DataLossError(StrCat(path_, ": the log had ", bytes_, " bytes and now has ",
                                        contents.size(), ": another program has changed it"));
    }
    contents.resize(bytes_);
  }
  return Write(contents);
}

// Writes the whole file anew and opens it for appending.
absl::Status RecordLog::Write(std::string_view contents) {
  if (file_ != nullptr) (void)file_->Close();
  file_ = nullptr;
  MUSTER_RETURN_IF_ERROR(io::WriteAsOnlyWriter(files_, path_, contents));
  bytes_ = contents.size();
  has_sound_end_ = true;
  MUSTER_ASSIGN_OR_RETURN(file_, files_.OpenForAppend(path_));
  return absl::OkStatus();
}

}  // namespace muster::formats
