// The segments of a topic that grows (data/growing_data.h): which offsets they have, and the files
// in which that is written down (docs/formats/segments.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/kafka/kafka_name.h"
#include "muster/io/file_system.h"

namespace muster::data {

// A segment of several topics: a name with ranges and chunk for each.
using KafkaSegment = std::vector<KafkaName>;

int64_t CountOffsets(const KafkaSegment& segment);

// Returns the offsets of `now`, which are those that can be read of each partition, without those
// that `before`, the ranges of the segment before, ends after. A partition that `before` lacks is
// new: all its offsets are returned. OUT_OF_RANGE if retention has removed an offset that is
// wanted, or if a partition ends before `before` does.
absl::StatusOr<std::vector<OffsetRange>> FindLaterRanges(std::string_view topic,
                                                         const std::vector<OffsetRange>& before,
                                                         const std::vector<OffsetRange>& now);

// Leaves the last offsets of the segment out, so that their number is a multiple of `multiple`. A
// segment with fewer offsets stays as it is.
void CutToMultiple(int64_t multiple, KafkaSegment* segment);

// The segments that have begun, in files of one folder, which one process at a time writes. One
// owner thread.
class SegmentRecord {
 public:
  // A file has so many segments: it is written anew with each of them.
  static constexpr int64_t kSegmentsInFile = 1000;

  explicit SegmentRecord(std::string folder, int64_t segments_in_file = kSegmentsInFile)
      : folder_(std::move(folder)), in_file_(segments_in_file) {}

  const std::string& folder() const { return folder_; }
  // Returns nullopt for a segment that has not begun. DATA_LOSS for a file with anything else.
  absl::StatusOr<std::optional<KafkaSegment>> Find(io::FileSystem& files, int64_t number);
  // Adds the segment, which must be the one after the last. When this returns OK, it is durable.
  absl::Status Append(io::FileSystem& files, int64_t number, const KafkaSegment& segment);
  // Removes all segments, the last ones first.
  absl::Status Clear(io::FileSystem& files);

 private:
  absl::Status ReadFileOf(io::FileSystem& files, int64_t number);

  std::string folder_;
  int64_t in_file_;
  int64_t file_ = -1;                   // the file that was read last
  std::vector<KafkaSegment> segments_;  // what it has
};

}  // namespace muster::data
