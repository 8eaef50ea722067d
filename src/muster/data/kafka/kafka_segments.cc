#include "muster/data/kafka/kafka_segments.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

#include "muster/base/strings.h"
#include "nlohmann/json.hpp"

namespace muster::data {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{256} << 20;
constexpr char kFilePrefix[] = "segments-";

std::string PathOf(const std::string& folder, int64_t file) {
  return io::JoinPath(folder, absl::StrFormat("%s%06d.json", kFilePrefix, file));
}

absl::StatusOr<KafkaSegment> ParseSegment(const nlohmann::json& json) {
  if (!json.is_array() || json.empty()) return absl::DataLossError("a segment has no names");
  KafkaSegment segment;
  for (const nlohmann::json& text : json) {
    if (!text.is_string()) return absl::DataLossError("a name is no text");
    MUSTER_ASSIGN_OR_RETURN(KafkaName name, ParseKafkaName(text.get<std::string>()));
    if (!name.is_fixed() || name.chunk == 0) return absl::DataLossError("a name has no ranges");
    segment.push_back(std::move(name));
  }
  return segment;
}

absl::StatusOr<std::vector<KafkaSegment>> ParseFile(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) return absl::DataLossError("it is no array of JSON");
  std::vector<KafkaSegment> segments;
  for (const nlohmann::json& each : json) {
    MUSTER_ASSIGN_OR_RETURN(segments.emplace_back(), ParseSegment(each));
  }
  return segments;
}

std::string PrintFile(const std::vector<KafkaSegment>& segments) {
  std::string text;
  for (const KafkaSegment& segment : segments) {
    nlohmann::json names = nlohmann::json::array();
    for (const KafkaName& name : segment) names.push_back(PrintKafkaName(name));
    text += StrCat(text.empty() ? "[" : ",\n ", names.dump());
  }
  return text + "]\n";
}

absl::Status CheckLater(std::string_view partition, int64_t wanted, const OffsetRange& now) {
  if (now.begin > wanted) {
    return absl::OutOfRangeError(
        StrCat(partition, ": offset ", wanted, " is wanted, but the first one that is kept is ",
               now.begin, ": the topic's retention has removed the records before it; raise ",
               "retention.ms, and continue with the records that are kept by --fresh-data"));
  }
  if (now.end < wanted) {
    return absl::OutOfRangeError(
        StrCat(partition, ": offset ", wanted, " is wanted, but the partition ends at ", now.end,
               ": it has lost records, or the topic was made anew; --fresh-data begins with the ",
               "records that are there"));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t CountOffsets(const KafkaSegment& segment) {
  int64_t sum = 0;
  for (const KafkaName& name : segment) {
    for (const OffsetRange& range : name.ranges) sum += range.end - range.begin;
  }
  return sum;
}

absl::StatusOr<std::vector<OffsetRange>> FindLaterRanges(std::string_view topic,
                                                         const std::vector<OffsetRange>& before,
                                                         const std::vector<OffsetRange>& now) {
  std::vector<OffsetRange> later;
  for (OffsetRange range : now) {
    const auto known = std::ranges::find(before, range.partition, &OffsetRange::partition);
    if (known != before.end()) {
      MUSTER_RETURN_IF_ERROR(CheckLater(PartitionName(topic, range.partition), known->end, range));
      range.begin = known->end;
    }
    later.push_back(range);
  }
  return later;
}

void CutToMultiple(int64_t multiple, KafkaSegment* segment) {
  const int64_t count = CountOffsets(*segment);
  if (count < multiple) return;
  int64_t excess = count % multiple;
  for (auto name = segment->rbegin(); name != segment->rend(); ++name) {
    for (auto range = name->ranges.rbegin(); range != name->ranges.rend(); ++range) {
      const int64_t taken = std::min(excess, range->end - range->begin);
      range->end -= taken;
      excess -= taken;
    }
  }
}

absl::Status SegmentRecord::ReadFileOf(io::FileSystem& files, int64_t number) {
  const int64_t file = number / in_file_;
  if (file == file_) return absl::OkStatus();
  const std::string path = PathOf(folder_, file);
  const auto text = io::ReadFile(files, path, kMaxFileBytes);
  std::vector<KafkaSegment> segments;
  if (!absl::IsNotFound(text.status())) {
    MUSTER_RETURN_IF_ERROR(text.status());
    auto parsed = ParseFile(*text);
    if (!parsed.ok()) {
      return absl::DataLossError(
          StrCat(path, ": does not hold segments of topics: ", parsed.status().message(),
                 "; put back a copy of it, or begin the topics anew with --fresh-data"));
    }
    segments = *std::move(parsed);
  }
  file_ = file;
  segments_ = std::move(segments);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<KafkaSegment>> SegmentRecord::Find(io::FileSystem& files,
                                                                int64_t number) {
  MUSTER_RETURN_IF_ERROR(ReadFileOf(files, number));
  const auto place = static_cast<size_t>(number % in_file_);
  if (place >= segments_.size()) return std::nullopt;
  return segments_[place];
}

absl::Status SegmentRecord::Append(io::FileSystem& files, int64_t number,
                                   const KafkaSegment& segment) {
  MUSTER_RETURN_IF_ERROR(ReadFileOf(files, number));
  if (segments_.size() != static_cast<size_t>(number % in_file_)) {
    return absl::InternalError(StrCat("segment ", number, " does not come after the last one"));
  }
  MUSTER_RETURN_IF_ERROR(files.MakeFolders(folder_));
  if (number == 0) MUSTER_RETURN_IF_ERROR(files.SyncFolder(io::Dirname(folder_)));
  segments_.push_back(segment);
  const absl::Status written =
      io::WriteAsOnlyWriter(files, PathOf(folder_, file_), PrintFile(segments_));
  if (!written.ok()) file_ = -1;  // the file may have the segment or not
  return written;
}

absl::Status SegmentRecord::Clear(io::FileSystem& files) {
  file_ = -1;
  const auto names = files.List(folder_);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(names.status());
  for (auto name = names->rbegin(); name != names->rend(); ++name) {
    if (!name->starts_with(kFilePrefix)) continue;
    MUSTER_RETURN_IF_ERROR(files.Remove(io::JoinPath(folder_, *name)));
  }
  return files.SyncFolder(folder_);
}

}  // namespace muster::data
