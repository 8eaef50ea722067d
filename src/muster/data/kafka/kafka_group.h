// KafkaGroup: the offsets that a consumer group has committed, without being a member of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "muster/base/status.h"
#include "muster/data/kafka/kafka_handle.h"

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
};

}  // namespace muster::data
