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
constexpr int kCommitAttempts = 5, kCommitAnswerMillis = 500;
constexpr std::chrono::milliseconds kPause{200};

// The answers to a commit of a client that is no member, where the group has members.
bool HasMembers(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID ||
         error == RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION ||
         error == RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS;
}

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

  absl::Status Commit(const std::string& topic, const std::vector<OffsetRange>& read) override {
    rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR__TIMED_OUT;
    for (int i = 0; i < kCommitAttempts && IsTransient(error); ++i) {
      if (i > 0) std::this_thread::sleep_for(kPause);
      error = SendCommit(topic, read);
    }
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return absl::OkStatus();
    if (HasMembers(error)) {
      return absl::FailedPreconditionError(
          StrCat("group ", group_, " has members, whose offsets these would replace: name a group ",
                 "that nobody else uses"));
    }
    return handle_.Failed(error, StrCat("committing the offsets of ", topic, " to group ", group_));
  }

 private:
  rd_kafka_resp_err_t SendCommit(const std::string& topic, const std::vector<OffsetRange>& read) {
    const RdKafka& calls = handle_.calls();
    rd_kafka_topic_partition_list_t* const list =
        calls.rd_kafka_topic_partition_list_new(static_cast<int>(read.size()));
    for (const OffsetRange& range : read) {
      calls.rd_kafka_topic_partition_list_add(list, topic.c_str(), range.partition)->offset =
          range.end;
    }
    rd_kafka_queue_t* const answers = calls.rd_kafka_queue_new(handle_.get());
    rd_kafka_resp_err_t error =
        calls.rd_kafka_commit_queue(handle_.get(), list, answers, nullptr, nullptr);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
      rd_kafka_event_t* const answer = calls.rd_kafka_queue_poll(answers, kCommitAnswerMillis);
      error = answer == nullptr ? RD_KAFKA_RESP_ERR__TIMED_OUT : calls.rd_kafka_event_error(answer);
      if (answer != nullptr) calls.rd_kafka_event_destroy(answer);
    }
    calls.rd_kafka_queue_destroy(answers);
    calls.rd_kafka_topic_partition_list_destroy(list);
    return error;
  }

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
