// TrainedOffsets: commits to a consumer group how far a training of a growing topic has come, for
// tools that show the lag of groups. Nothing is ever read from these offsets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/kafka/kafka_handle.h"
#include "muster/io/file_system.h"

namespace muster::data {

struct TrainedOffsetsSpec {
  std::vector<std::string> names;  // as KafkaGrowthSpec::names
  KafkaSettings settings = {};
  std::string folder;  // of the segments that are written down
  std::string group;
};

// One owner thread.
class TrainedOffsets {
 public:
  virtual ~TrainedOffsets() = default;
  // Commits the ends of the first `segments` segments, all of which have begun. Waits for an answer
  // for 3 seconds at most.
  virtual absl::Status Commit(io::FileSystem& files, int64_t segments) = 0;
};

// Asks the brokers for the group's offsets, so that a group that this user may not use is refused
// here.
absl::StatusOr<std::unique_ptr<TrainedOffsets>> OpenTrainedOffsets(const TrainedOffsetsSpec& spec);

}  // namespace muster::data
