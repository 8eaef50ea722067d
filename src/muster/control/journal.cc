#include "muster/control/journal.h"

#include <charconv>
#include <utility>

#include "absl/strings/str_format.h"

#include "muster/base/crc32c.h"

namespace muster::control {
namespace {

using formats::MergePatch;
using formats::ParseJsonObject;
using formats::PrintJson;

constexpr size_t kChecksumDigits = 8;
constexpr uint64_t kMaxBytes = uint64_t{256} << 20;
constexpr uint64_t kRewriteBytes = uint64_t{4} << 20;  // longer than this it is written anew

std::string Line(const Json& entry) {
  const std::string text = PrintJson(entry);
  return absl::StrFormat("%08x %s\n", Crc32c(text), text);
}

// The entry of a line, or why it is none.
absl::StatusOr<Json> ParseLine(std::string_view line) {
  const auto damaged = [](std::string_view why) { return absl::DataLossError(ToAbsl(why)); };
  uint32_t checksum = 0;
  if (line.size() <= kChecksumDigits || line[kChecksumDigits] != ' ') {
    return damaged("has no checksum");
  }
  const char* const end = line.data() + kChecksumDigits;
  if (std::from_chars(line.data(), end, checksum, 16).ptr != end) return damaged("has no checksum");
  const std::string_view text = line.substr(kChecksumDigits + 1);
  if (Crc32c(text) != checksum) return damaged("does not fit its checksum");
  auto entry = ParseJsonObject(text, "entry");
  if (!entry.ok()) return damaged(ToStd(entry.status().message()));
  return entry;
}

}  // namespace

absl::StatusOr<JournalState> ParseJournal(std::string_view bytes, const std::string& name) {
  JournalState journal;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const bool is_cut = end == std::string_view::npos;
    const bool is_last = is_cut || end + 1 == bytes.size();
    const auto entry = is_cut ? absl::DataLossError("is cut") : ParseLine(bytes.substr(0, end));
    if (!entry.ok()) {
      if (!is_cut && !(is_last && bytes.find('\0') != std::string_view::npos)) {
        return absl::DataLossError(
            StrCat(name, ": line ", journal.lines + 1, " ", ToStd(entry.status().message()),
                   ": the journal is damaged, and what followed cannot be trusted"));
      }
      journal.torn = true;
      return journal;
    }
    ++journal.lines;
    journal.state.merge_patch(*entry);
    bytes.remove_prefix(end + 1);
  }
  return journal;
}

absl::StatusOr<JournalState> ReadJournal(io::FileSystem& files, const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string bytes, io::ReadFile(files, path, kMaxBytes));
  return ParseJournal(bytes, path);
}

absl::StatusOr<std::unique_ptr<Journal>> Journal::Open(io::FileSystem& files, std::string path) {
  std::unique_ptr<Journal> journal(new Journal(files, std::move(path)));
  auto read = ReadJournal(files, journal->path_);
  if (!read.ok() && !absl::IsNotFound(read.status())) return read.status();
  if (read.ok()) journal->state_ = std::move(read->state);
  return journal;
}

Journal::~Journal() {
  if (file_ != nullptr) (void)file_->Close();  // every line was synced
}

absl::Status Journal::Append(const Json& state) {
  if (file_ == nullptr || bytes_ > kRewriteBytes) {
    MUSTER_RETURN_IF_ERROR(Rewrite(state));
  } else {
    const Json patch = MergePatch(state_, state);
    if (patch.empty()) return absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(AppendLine(Line(patch)));
  }
  state_ = state;
  return absl::OkStatus();
}

absl::Status Journal::Rewrite(const Json& state) {
  if (file_ != nullptr) (void)file_->Close();
  file_ = nullptr;
  const std::string line = Line(state);
  MUSTER_RETURN_IF_ERROR(io::WriteAsOnlyWriter(files_, path_, line));
  MUSTER_ASSIGN_OR_RETURN(file_, files_.OpenForAppend(path_));
  bytes_ = line.size();
  return absl::OkStatus();
}

absl::Status Journal::AppendLine(const std::string& line) {
  absl::Status status = file_->Append(line);
  if (status.ok()) status = file_->Sync();
  if (!status.ok()) {
    (void)file_->Close();
    file_ = nullptr;
    return Annotate(status, "cannot write down what is about to be done");
  }
  bytes_ += line.size();
  return absl::OkStatus();
}

}  // namespace muster::control
