#include "muster/data/kafka/kafka_group.h"

#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "muster/base/strings.h"
#include "muster/data/kafka/kafka_name.h"

namespace muster::data {
namespace {

constexpr int kAttempts = 30;
constexpr int kAttemptMillis = 2'000;
constexpr std::chrono::milliseconds kPause{200};

// Brokers answer so while a group's coordinator starts, moves or reads the group's offsets.
bool IsTransient(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR__TIMED_OUT || error == RD_KAFKA_RESP_ERR__WAIT_COORD ||
         error == RD_KAFKA_RESP_ERR_NOT_COORDINATOR ||
         error == RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE ||
         error == RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS;
}

class GroupImpl : public KafkaGroup {
 public:
  explicit GroupImpl(std::string group) : group_(std::move(group)) {}

  absl::Status Open(const std::string& brokers, const KafkaSettings& settings) {
    const std::array<KafkaHandle::Setting, 4> decided = {{
        {"enable.auto.commit", "false"},
        {"group.id", group_.c_str()},
        {"isolation.level", "read_committed"},
        {"log_level", "3"},
    }};
    return handle_.Open(
        {.type = RD_KAFKA_CONSUMER, .brokers = brokers, .settings = settings, .decided = decided});
  }

  absl::StatusOr<std::optional<int64_t>> FindOffset(const std::string& topic,
                                                    int32_t partition) override {
    int64_t offset = 0;
    rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR__TIMED_OUT;
    for (int i = 0; i < kAttempts && IsTransient(error); ++i) {
      if (i > 0) std::this_thread::sleep_for(kPause);
      error = Ask(topic, partition, &offset);
      if (error == RD_KAFKA_RESP_ERR__TIMED_OUT) error = TakeRefusal(error);
    }
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return handle_.Failed(error, StrCat("asking how far group ", group_, " has read ",
                                          PartitionName(topic, partition)));
    }
    if (offset < 0) return std::nullopt;
    return offset;
  }

 private:
  rd_kafka_resp_err_t Ask(const std::string& topic, int32_t partition, int64_t* offset) {
    const RdKafka& calls = handle_.calls();
    rd_kafka_topic_partition_list_t* const asked = calls.rd_kafka_topic_partition_list_new(1);
    calls.rd_kafka_topic_partition_list_add(asked, topic.c_str(), partition);
    rd_kafka_resp_err_t error = calls.rd_kafka_committed(handle_.get(), asked, kAttemptMillis);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) error = asked->elems[0].err;
    *offset = asked->elems[0].offset;
    calls.rd_kafka_topic_partition_list_destroy(asked);
    return error;
  }

  // A broker that refuses the group is asked again and again by librdkafka, which tells it among
  // the messages.
  rd_kafka_resp_err_t TakeRefusal(rd_kafka_resp_err_t otherwise) {
    const RdKafka& calls = handle_.calls();
    while (rd_kafka_message_t* const message = calls.rd_kafka_consumer_poll(handle_.get(), 0)) {
      if (message->err == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED) otherwise = message->err;
      calls.rd_kafka_message_destroy(message);
    }
    return otherwise;
  }

  const std::string group_;
  KafkaHandle handle_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<KafkaGroup>> KafkaGroup::Open(const std::string& brokers,
                                                             const std::string& group,
                                                             const KafkaSettings& settings) {
  auto opened = std::make_unique<GroupImpl>(group);
  MUSTER_RETURN_IF_ERROR(opened->Open(brokers, settings));
  return opened;
}

}  // namespace muster::data
