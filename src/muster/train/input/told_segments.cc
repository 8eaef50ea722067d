#include "muster/train/input/told_segments.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "muster/base/strings.h"
#include "muster/data/reader.h"

namespace muster::train {

absl::StatusOr<std::string> ToldSegments::Ask(io::FileSystem& files, int64_t number) {
  if (origin_ == nullptr) return "";
  MUSTER_ASSIGN_OR_RETURN(const auto segment, origin_->GetSegment(files, number));
  if (!segment) return "";
  return StrCat(number, " ", segment->records, "\n", absl::StrJoin(segment->patterns, "\n"));
}

absl::Status ToldSegments::Tell(std::string_view text) {
  std::vector<std::string> lines = absl::StrSplit(std::string(text), '\n');
  const std::vector<std::string> numbers = absl::StrSplit(lines.front(), ' ');
  int64_t number = -1;
  uint64_t records = 0;
  if (lines.size() < 2 || numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &number) ||
      !absl::SimpleAtoi(numbers[1], &records) || number < 0) {
    return absl::InvalidArgumentError("is not the text of a segment");
  }
  lines.erase(lines.begin());
  number_ = number;
  segment_ = {.patterns = std::move(lines), .records = records};
  return absl::OkStatus();
}

absl::StatusOr<std::optional<data::DataSegment>> ToldSegments::GetSegment(io::FileSystem& /*files*/,
                                                                          int64_t number) {
  if (number_ < 0 || number != number_) return std::nullopt;
  return segment_;
}

absl::StatusOr<uint64_t> ToldSegments::CountLater() {
  return origin_ != nullptr ? origin_->CountLater() : absl::StatusOr<uint64_t>(0);
}

absl::StatusOr<int64_t> FindPresentSegment(const std::vector<std::string>& positions) {
  int64_t newest = -1;
  for (const std::string& text : positions) {
    if (text.empty()) continue;
    MUSTER_ASSIGN_OR_RETURN(const data::Position position, data::ParsePosition(text));
    newest = std::max(newest, position.epoch);
  }
  return newest;
}

absl::Status NoSuchSegment(int64_t number) {
  return absl::FailedPreconditionError(
      StrCat("the checkpoint's position is in segment ", number,
             " of data that grows, which has not begun: the model was trained on other data; give "
             "that again, or begin this one with --fresh-data"));
}

}  // namespace muster::train
