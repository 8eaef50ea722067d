// GrowingData: data to which records are added while it is read, such as a topic, as a sequence of
// segments. A segment is bounded data: which records it has is decided when it begins, is written
// down durably before anybody gets it, and never changes. Segment 0 begins with the first records,
// and each other one where the segment before it ends, so that each record is in one segment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::data {

struct DataSegment {
  std::vector<std::string> patterns;  // as SourceSpec::patterns
  uint64_t records = 0;               // as announced (ChunkInfo::records)
};

// One owner thread.
class GrowingData {
 public:
  virtual ~GrowingData() = default;
  // Returns segment `number`; nullopt if it has not begun, because there are too few records: then
  // the call may have waited for them, for less than a second. The segments are written down in
  // `files`. FAILED_PRECONDITION if the segment before it has not begun either.
  virtual absl::StatusOr<std::optional<DataSegment>> GetSegment(io::FileSystem& files,
                                                                int64_t number) = 0;
  // Returns the number of records after the segment that GetSegment has returned last, as it was
  // less than a second ago or is now.
  virtual absl::StatusOr<uint64_t> CountLater() = 0;
};

}  // namespace muster::data
