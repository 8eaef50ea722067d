// What is asked of brokers about topics as a whole.
#pragma once

#include <string>
#include <string_view>

#include "muster/base/status.h"
#include "muster/data/kafka/kafka_handle.h"

namespace muster::data {

// Returns the value of a topic's setting, such as cleanup.policy; "" if there is none of this name,
// or if the user may not see the topic's settings.
absl::StatusOr<std::string> FindTopicSetting(KafkaHandle& handle, const std::string& topic,
                                             std::string_view setting);

// Makes the topic unless it exists, with as many copies as the brokers' settings say. `partitions`
// 0: as many as they say.
absl::Status MakeTopic(KafkaHandle& handle, const std::string& topic, int partitions);

}  // namespace muster::data
