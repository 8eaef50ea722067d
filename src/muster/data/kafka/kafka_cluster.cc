#include "muster/data/kafka/kafka_cluster.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <thread>
#include <utility>

#include "absl/strings/match.h"

#include "muster/base/strings.h"
#include "muster/data/kafka/kafka_admin.h"

namespace muster::data {
namespace {

constexpr int kPollMillis = 200;
constexpr int kWakeAnswerMillis = 1000;
constexpr int kWakeMillis = 2;  // without a message, after which the client is woken
constexpr auto kSilence = std::chrono::seconds(kKafkaSilenceSeconds);
constexpr auto kWarningSilence = std::chrono::seconds(kKafkaWarningSeconds);
constexpr auto kAskSilence = std::chrono::seconds(5);   // after which a topic may have been deleted
constexpr auto kStopSilence = std::chrono::seconds(1);  // after which a stop ends a read
constexpr auto kNoSilence = std::chrono::steady_clock::duration::zero();
// How long a partition may take to learn that a transaction was committed.
constexpr auto kCommitSpread = std::chrono::seconds(5);
constexpr size_t kMessagesAtOnce = 2048;

// What a person may not change: positions and the end of a partition depend on it.
constexpr std::array<KafkaHandle::Setting, 7> kDecided = {{
    {"auto.offset.reset", "error"},
    {"enable.auto.commit", "false"},
    {"enable.auto.offset.store", "false"},
    {"enable.partition.eof", "true"},
    {"group.id", nullptr},
    {"isolation.level", "read_committed"},
    {"log_level", "3"},
}};
// A fetch brings about a chunk, and what is fetched too early is little.
constexpr std::array<KafkaHandle::Setting, 6> kDefaults = {{
    {"check.crcs", "true"},
    {"client.id", "muster"},
    {"fetch.error.backoff.ms", "100"},
    {"fetch.wait.max.ms", "5"},
    {"queued.max.messages.kbytes", "8192"},
    {"reconnect.backoff.max.ms", "1000"},
}};

class ReaderImpl : public PartitionReader {
 public:
  ReaderImpl(KafkaCluster& cluster, KafkaHandle& handle, rd_kafka_topic_t* topic, std::string name,
             int32_t partition, std::vector<std::string> headers)
      : cluster_(cluster),
        handle_(handle),
        calls_(handle.calls()),
        topic_(topic),
        topic_name_(std::move(name)),
        partition_(partition),
        headers_(std::move(headers)),
        header_values_(headers_.size()) {}
  ~ReaderImpl() override {
    Stop();
    calls_.rd_kafka_topic_destroy(topic_);
  }
  ReaderImpl(const ReaderImpl&) = delete;
  ReaderImpl& operator=(const ReaderImpl&) = delete;

  absl::Status Read(int64_t begin, int64_t end, const Take& take,
                    const std::atomic<bool>* stop) override;

 private:
  absl::Status Start(int64_t offset);
  void Stop();
  // Waits for messages, a short time.
  absl::Status Fetch(int64_t begin);
  void Wake();
  absl::Status FailedMessage(const rd_kafka_message_t& message, int64_t begin);
  absl::Status DeletedTopic();
  KafkaMessage Describe(const rd_kafka_message_t& message);
  std::string Name() const { return PartitionName(topic_name_, partition_); }

  KafkaCluster& cluster_;
  KafkaHandle& handle_;
  const RdKafka& calls_;
  rd_kafka_topic_t* const topic_;
  const std::string topic_name_;
  const int32_t partition_;
  const std::vector<std::string> headers_;
  std::vector<std::optional<std::string_view>> header_values_;  // of one message
  bool started_ = false;
  bool may_wake_ = false;     // the last attempt has brought messages
  int64_t position_ = -1;     // all messages before it were taken; -1: nothing was read
  int64_t empty_until_ = -1;  // what the brokers have said: nothing is between position_ and this
  std::deque<rd_kafka_message_t*> fetched_;
};

class ClusterImpl : public KafkaCluster {
 public:
  absl::Status Open(const std::string& brokers, const KafkaSettings& settings) {
    return handle_.Open({.type = RD_KAFKA_CONSUMER,
                         .brokers = brokers,
                         .settings = settings,
                         .defaults = kDefaults,
                         .decided = kDecided});
  }

  absl::StatusOr<std::string> GetId() override {
    char* const id = calls().rd_kafka_clusterid(handle_.get(), kKafkaAnswerMillis);
    if (id == nullptr) return handle_.Failed(RD_KAFKA_RESP_ERR__TIMED_OUT, "asking for its id");
    std::string text = id;
    calls().rd_kafka_mem_free(handle_.get(), id);
    return text;
  }

  absl::StatusOr<std::vector<int32_t>> ListPartitions(const std::string& topic) override {
    return handle_.ListPartitions(topic);
  }

  absl::StatusOr<OffsetRange> FindRange(const std::string& topic, int32_t partition) override {
    OffsetRange range{.partition = partition};
    const rd_kafka_resp_err_t error = calls().rd_kafka_query_watermark_offsets(
        handle_.get(), topic.c_str(), partition, &range.begin, &range.end, kKafkaAnswerMillis);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return range;
    return handle_.Failed(error,
                          StrCat("asking for the offsets of ", PartitionName(topic, partition)));
  }

  absl::Status CheckEnds(const KafkaName& name) override {
    for (const OffsetRange& range : name.ranges) {
      const auto begin = std::chrono::steady_clock::now();
      MUSTER_ASSIGN_OR_RETURN(OffsetRange now, FindRange(name.topic, range.partition));
      while (range.end > now.end && std::chrono::steady_clock::now() - begin < kCommitSpread) {
        std::this_thread::sleep_for(std::chrono::milliseconds(kPollMillis));
        MUSTER_ASSIGN_OR_RETURN(now, FindRange(name.topic, range.partition));
      }
      if (range.end <= now.end) continue;
      return absl::OutOfRangeError(
          StrCat(PartitionName(name.topic, range.partition), ": records up to offset ", range.end,
                 " are wanted, but the partition ends at offset ", now.end,
                 ": a transaction is open, the partition has lost records, or the topic was made "
                 "anew; name ranges that end there"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<bool> IsCompacted(const std::string& topic) override {
    MUSTER_ASSIGN_OR_RETURN(const std::string policy,
                            FindTopicSetting(handle_, topic, "cleanup.policy"));
    return absl::StrContains(policy, "compact");
  }

  absl::StatusOr<std::unique_ptr<PartitionReader>> OpenPartition(
      const std::string& topic, int32_t partition, std::vector<std::string> headers) override {
    MUSTER_ASSIGN_OR_RETURN(rd_kafka_topic_t* const opened, handle_.OpenTopic(topic));
    return std::make_unique<ReaderImpl>(*this, handle_, opened, topic, partition,
                                        std::move(headers));
  }

 private:
  const RdKafka& calls() const { return handle_.calls(); }

  KafkaHandle handle_;
};

absl::Status ReaderImpl::Start(int64_t offset) {
  Stop();
  if (calls_.rd_kafka_consume_start(topic_, partition_, offset) != 0) {
    return handle_.Failed(calls_.rd_kafka_last_error(), StrCat("reading ", Name()));
  }
  started_ = true;
  position_ = offset;
  empty_until_ = -1;
  may_wake_ = false;
  return absl::OkStatus();
}

void ReaderImpl::Stop() {
  for (rd_kafka_message_t* const message : fetched_) calls_.rd_kafka_message_destroy(message);
  fetched_.clear();
  if (started_) calls_.rd_kafka_consume_stop(topic_, partition_);
  started_ = false;
}

absl::Status ReaderImpl::FailedMessage(const rd_kafka_message_t& message, int64_t begin) {
  if (message.err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
      message.err == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC) {
    return DeletedTopic();
  }
  if (message.err != RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET &&
      message.err != RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE) {
    return handle_.Failed(message.err, StrCat("reading ", Name(), " at offset ", position_));
  }
  MUSTER_ASSIGN_OR_RETURN(const OffsetRange range, cluster_.FindRange(topic_name_, partition_));
  if (range.begin > begin) {
    return absl::OutOfRangeError(StrCat(
        Name(), ": offset ", begin, " is wanted, but the first one that is kept is ", range.begin,
        ": the topic's retention has removed the records before it; name "
        "ranges that are kept, or raise retention.ms"));
  }
  return absl::OutOfRangeError(StrCat(Name(), ": offset ", begin,
                                      " is wanted, but the partition ends at ", range.end,
                                      ": it has lost records, or the topic was made anew"));
}

absl::Status ReaderImpl::DeletedTopic() {
  Stop();
  return absl::NotFoundError(StrCat("kafka://", handle_.brokers(), ": the topic '", topic_name_,
                                    "' was deleted while it was read, before offset ", position_,
                                    " of ", Name()));
}

KafkaMessage ReaderImpl::Describe(const rd_kafka_message_t& message) {
  const auto text = [](const void* data, size_t size) {
    return std::string_view(static_cast<const char*>(data), size);
  };
  KafkaMessage described = {.offset = message.offset,
                            .value = text(message.payload, message.len),
                            .is_deletion = message.payload == nullptr};
  if (message.key != nullptr) described.key = text(message.key, message.key_len);
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  described.timestamp_ms = calls_.rd_kafka_message_timestamp(&message, &type);
  if (headers_.empty()) return described;
  rd_kafka_headers_t* all = nullptr;
  const bool has_any =
      calls_.rd_kafka_message_headers(&message, &all) == RD_KAFKA_RESP_ERR_NO_ERROR;
  for (size_t i = 0; i < headers_.size(); ++i) {
    const void* value = nullptr;
    size_t size = 0;
    header_values_[i].reset();
    if (!has_any || calls_.rd_kafka_header_get_last(all, headers_[i].c_str(), &value, &size) !=
                        RD_KAFKA_RESP_ERR_NO_ERROR) {
      continue;
    }
    if (value != nullptr) header_values_[i] = text(value, size);
  }
  described.headers = header_values_;
  return described;
}

// librdkafka fetches nothing while enough is waiting to be read, and before 2.2 it looks again
// after up to a second, though all has been read. Any answer of the partition's broker makes it
// look at once. (So does a seek, which however drops what is on its way.)
void ReaderImpl::Wake() {
  int64_t begin = 0;
  int64_t end = 0;
  calls_.rd_kafka_query_watermark_offsets(handle_.get(), topic_name_.c_str(), partition_, &begin,
                                          &end, kKafkaAnswerMillis);
}

absl::Status ReaderImpl::Fetch(int64_t begin) {
  // A batch alone would be waited for until it is full or the time is over.
  std::array<rd_kafka_message_t*, kMessagesAtOnce> messages{};
  const bool wakes = std::exchange(may_wake_, false);
  messages[0] = calls_.rd_kafka_consume(topic_, partition_, wakes ? kWakeMillis : kPollMillis);
  if (messages[0] == nullptr) {
    if (wakes) Wake();
    return absl::OkStatus();
  }
  const ssize_t more = calls_.rd_kafka_consume_batch(topic_, partition_, 0, messages.data() + 1,
                                                     messages.size() - 1);
  const ssize_t count = 1 + std::max<ssize_t>(more, 0);
  absl::Status result;
  for (ssize_t i = 0; i < count; ++i) {
    rd_kafka_message_t* const message = messages[static_cast<size_t>(i)];
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR && result.ok()) {
      fetched_.push_back(message);
      may_wake_ = true;
      continue;
    }
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      empty_until_ = message->offset;  // it comes after all messages before it
    } else if (result.ok()) {
      result = FailedMessage(*message, begin);
    }
    calls_.rd_kafka_message_destroy(message);
  }
  if (!result.ok()) Stop();
  return result;
}

absl::Status ReaderImpl::Read(int64_t begin, int64_t end, const Take& take,
                              const std::atomic<bool>* stop) {
  if (begin == end) return absl::OkStatus();
  const bool jumps = position_ >= 0 && begin != position_;
  if (!started_ || begin != position_) MUSTER_RETURN_IF_ERROR(Start(begin));
  auto heard = std::chrono::steady_clock::now();
  bool has_heard = false, has_asked = false, has_warned = false;
  while (true) {
    while (!fetched_.empty() && fetched_.front()->offset < end) {
      rd_kafka_message_t* const message = fetched_.front();
      fetched_.pop_front();
      position_ = message->offset + 1;
      const bool more = take(Describe(*message));
      calls_.rd_kafka_message_destroy(message);
      if (!more) return absl::OkStatus();
      has_heard = true;
    }
    if (std::exchange(has_heard, false)) {
      heard = std::chrono::steady_clock::now();
      has_warned = false;
    }
    const bool has_later = !fetched_.empty();
    if (has_later || empty_until_ >= end || position_ >= end) {
      position_ = end;
      // It would ask for records that nobody wants: after the partition's end, or after the records
      // of a jump, which another jump is likely to follow.
      if (jumps || (!has_later && empty_until_ >= end)) Stop();
      return absl::OkStatus();
    }
    MUSTER_RETURN_IF_ERROR(Fetch(begin));
    const auto silence = fetched_.empty() ? std::chrono::steady_clock::now() - heard : kNoSilence;
    if (silence > kStopSilence && stop != nullptr && *stop) {
      Stop();
      return absl::CancelledError(
          StrCat("told to end while the brokers of ", Name(), " were silent"));
    }
    if (silence > kAskSilence && !std::exchange(has_asked, true)) {
      const bool is_gone = absl::IsNotFound(handle_.ListPartitions(topic_name_).status());
      if (is_gone) return DeletedTopic();
    }
    if (silence > kWarningSilence && empty_until_ < 0 && !std::exchange(has_warned, true)) {
      WarnOfSilence(handle_.brokers(), StrCat("reading ", Name(), " at offset ", position_),
                    std::chrono::duration<double>(silence).count());
    }
    if (silence > kSilence) {
      const int64_t ends = empty_until_;
      Stop();
      if (ends < 0) {
        return handle_.Failed(RD_KAFKA_RESP_ERR__TIMED_OUT,
                              StrCat("reading ", Name(), " at offset ", position_, ", after ",
                                     kSilence.count(), " s without an answer"));
      }
      return absl::UnavailableError(
          StrCat(Name(), ": ends at offset ", ends, ", but records up to offset ", end,
                 " are wanted: a transaction is open, or the partition has lost records"));
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<KafkaCluster>> KafkaCluster::Connect(const std::string& brokers,
                                                                    const KafkaSettings& settings) {
  auto cluster = std::make_unique<ClusterImpl>();
  MUSTER_RETURN_IF_ERROR(cluster->Open(brokers, settings));
  return cluster;
}

}  // namespace muster::data
