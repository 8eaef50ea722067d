// KafkaGroup: the offsets of a consumer group, without being a member of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/kafka/kafka_handle.h"
#include "muster/data/kafka/kafka_name.h"

namespace muster::data {

// One owner thread.
class KafkaGroup {
 public:
  // `brokers` as in KafkaName.
  static absl::StatusOr<std::unique_ptr<KafkaGroup>> Open(const std::string& brokers,
                                                          const std::string& group,
                                                          const KafkaSettings& settings);
  virtual ~KafkaGroup() = default;
  // Returns the offset of the record that the group reads next; nothing if it has committed none.
  // Waits for the end of a transaction in which an offset is.
  virtual absl::StatusOr<std::optional<int64_t>> FindOffset(const std::string& topic,
                                                            int32_t partition) = 0;
  // Commits that the group has read each partition up to the end of its range. Waits for an answer
  // for 3 seconds at most. FAILED_PRECONDITION if the group has members, who commit themselves.
  virtual absl::Status Commit(const std::string& topic, const std::vector<OffsetRange>& read) = 0;
};

}  // namespace muster::data
