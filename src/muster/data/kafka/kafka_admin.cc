#include "muster/data/kafka/kafka_admin.h"

#include <functional>
#include <memory>

#include "muster/base/strings.h"

namespace muster::data {
namespace {

constexpr int kBrokersDecide = -1;
constexpr size_t kWhyBytes = 512;

using Event = std::unique_ptr<rd_kafka_event_t, decltype(&::rd_kafka_event_destroy)>;

// Waits for the answer to the request that `ask` sends.
absl::StatusOr<Event> Ask(KafkaHandle& handle, const std::string& what,
                          const std::function<void(rd_kafka_queue_t*)>& ask) {
  const RdKafka& calls = handle.calls();
  rd_kafka_queue_t* const queue = calls.rd_kafka_queue_new(handle.get());
  ask(queue);
  Event event(calls.rd_kafka_queue_poll(queue, kKafkaAnswerMillis), calls.rd_kafka_event_destroy);
  calls.rd_kafka_queue_destroy(queue);
  if (event == nullptr) return handle.Failed(RD_KAFKA_RESP_ERR__TIMED_OUT, what);
  const rd_kafka_resp_err_t error = calls.rd_kafka_event_error(event.get());
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return handle.Failed(error, what);
  return event;
}

}  // namespace

absl::StatusOr<std::string> FindTopicSetting(KafkaHandle& handle, const std::string& topic,
                                             std::string_view setting) {
  const RdKafka& calls = handle.calls();
  const std::string what = StrCat("asking for the settings of topic ", topic);
  rd_kafka_ConfigResource_t* wanted =
      calls.rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str());
  const auto event = Ask(handle, what, [&](rd_kafka_queue_t* queue) {
    calls.rd_kafka_DescribeConfigs(handle.get(), &wanted, 1, nullptr, queue);
  });
  calls.rd_kafka_ConfigResource_destroy(wanted);
  MUSTER_RETURN_IF_ERROR(event.status());
  size_t resources = 0;
  const rd_kafka_ConfigResource_t** const found = calls.rd_kafka_DescribeConfigs_result_resources(
      calls.rd_kafka_event_DescribeConfigs_result(event->get()), &resources);
  if (resources == 0) return "";
  const rd_kafka_resp_err_t error = calls.rd_kafka_ConfigResource_error(found[0]);
  if (error == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED) return "";
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return handle.Failed(error, what);
  size_t entries = 0;
  const rd_kafka_ConfigEntry_t** const all =
      calls.rd_kafka_ConfigResource_configs(found[0], &entries);
  for (size_t i = 0; i < entries; ++i) {
    if (calls.rd_kafka_ConfigEntry_name(all[i]) != setting) continue;
    const char* const value = calls.rd_kafka_ConfigEntry_value(all[i]);
    return value == nullptr ? "" : value;
  }
  return "";
}

absl::Status MakeTopic(KafkaHandle& handle, const std::string& topic, int partitions) {
  const RdKafka& calls = handle.calls();
  const std::string what = StrCat("making topic ", topic);
  char text[kWhyBytes] = "";
  rd_kafka_NewTopic_t* wanted =
      calls.rd_kafka_NewTopic_new(topic.c_str(), partitions > 0 ? partitions : kBrokersDecide,
                                  kBrokersDecide, text, sizeof text);
  if (wanted == nullptr) return absl::InvalidArgumentError(StrCat(what, ": ", text));
  const auto event = Ask(handle, what, [&](rd_kafka_queue_t* queue) {
    calls.rd_kafka_CreateTopics(handle.get(), &wanted, 1, nullptr, queue);
  });
  calls.rd_kafka_NewTopic_destroy(wanted);
  MUSTER_RETURN_IF_ERROR(event.status());
  size_t topics = 0;
  const rd_kafka_topic_result_t** const made = calls.rd_kafka_CreateTopics_result_topics(
      calls.rd_kafka_event_CreateTopics_result(event->get()), &topics);
  if (topics == 0) return absl::OkStatus();
  const rd_kafka_resp_err_t error = calls.rd_kafka_topic_result_error(made[0]);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR || error == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) {
    return absl::OkStatus();
  }
  const char* const why = calls.rd_kafka_topic_result_error_string(made[0]);
  return handle.Failed(error, StrCat(what, why == nullptr ? "" : StrCat(": ", why)));
}

}  // namespace muster::data
