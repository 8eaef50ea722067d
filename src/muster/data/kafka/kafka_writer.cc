#include "muster/data/kafka/kafka_writer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <utility>

#include "muster/base/strings.h"
#include "muster/data/kafka/kafka_admin.h"

namespace muster::data {
namespace {

constexpr int kCommitMillis = 120'000;
constexpr int kAbortMillis = 10'000;
constexpr int kFullPollMillis = 100;
constexpr size_t kFatalErrorBytes = 512;
constexpr auto kFullSeconds = std::chrono::seconds(120);

class WriterImpl : public KafkaWriter {
 public:
  explicit WriterImpl(KafkaWriterSpec spec) : spec_(std::move(spec)) {}
  ~WriterImpl() override {
    if (begun_) {
      calls().rd_kafka_purge(handle_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
      Take(calls().rd_kafka_abort_transaction(handle_.get(), kAbortMillis), "").IgnoreError();
    }
    if (topic_ != nullptr) calls().rd_kafka_topic_destroy(topic_);
  }
  WriterImpl(const WriterImpl&) = delete;
  WriterImpl& operator=(const WriterImpl&) = delete;

  absl::Status Open(const KafkaSettings& settings) {
    const std::string longest = StrCat(std::chrono::milliseconds(spec_.longest).count());
    const std::array<KafkaHandle::Setting, 4> defaults = {{
        {"client.id", "muster"},
        {"linger.ms", "20"},
        {"transaction.timeout.ms", longest.c_str()},
        {"reconnect.backoff.max.ms", "1000"},
    }};
    const std::array<KafkaHandle::Setting, 3> decided = {{
        {"enable.idempotence", "true"},
        {"log_level", "3"},
        {"transactional.id", spec_.transaction_id.c_str()},
    }};
    const std::string& topic = spec_.name.topic;
    MUSTER_RETURN_IF_ERROR(handle_.Open({.type = RD_KAFKA_PRODUCER,
                                         .brokers = spec_.name.brokers,
                                         .settings = settings,
                                         .defaults = defaults,
                                         .decided = decided,
                                         .delivered = &WriterImpl::Delivered,
                                         .opaque = this}));
    if (spec_.make_topic) {
      MUSTER_RETURN_IF_ERROR(MakeTopic(handle_, topic, spec_.partitions));
    }
    MUSTER_ASSIGN_OR_RETURN(partitions_, handle_.ListPartitions(topic));
    MUSTER_ASSIGN_OR_RETURN(topic_, handle_.OpenTopic(topic));
    MUSTER_RETURN_IF_ERROR(Take(calls().rd_kafka_init_transactions(handle_.get(), kCommitMillis),
                                "beginning a transaction"));
    return Begin();
  }

  const std::vector<int32_t>& partitions() const override { return partitions_; }

  absl::Status Append(int32_t partition, std::string_view value,
                      std::optional<std::string_view> key) override {
    MUSTER_RETURN_IF_ERROR(Begin());
    const std::string_view key_bytes = key.value_or("");
    const auto begin = std::chrono::steady_clock::now();
    while (true) {
      calls().rd_kafka_poll(handle_.get(), 0);
      MUSTER_RETURN_IF_ERROR(Check());
      // It copies the bytes, which it takes as not constant.
      void* const bytes = const_cast<char*>(value.data());
      if (calls().rd_kafka_produce(topic_, partition, RD_KAFKA_MSG_F_COPY, bytes, value.size(),
                                   key ? key_bytes.data() : nullptr, key_bytes.size(),
                                   nullptr) == 0) {
        return absl::OkStatus();
      }
      const rd_kafka_resp_err_t error = calls().rd_kafka_last_error();
      has_ended_ = error == RD_KAFKA_RESP_ERR__STATE;
      MUSTER_RETURN_IF_ERROR(Check());
      const bool is_full = error == RD_KAFKA_RESP_ERR__QUEUE_FULL;
      if (!is_full || std::chrono::steady_clock::now() - begin > kFullSeconds) {
        return Failed(error, StrCat("writing to ", PartitionName(spec_.name.topic, partition)));
      }
      calls().rd_kafka_poll(handle_.get(), kFullPollMillis);
    }
  }

  absl::Status Commit(const GroupOffset* read) override {
    MUSTER_RETURN_IF_ERROR(Begin());
    const rd_kafka_resp_err_t flushed = calls().rd_kafka_flush(handle_.get(), kCommitMillis);
    MUSTER_RETURN_IF_ERROR(Check());
    if (flushed != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return Failed(flushed, StrCat("writing to topic ", spec_.name.topic));
    }
    if (read != nullptr) MUSTER_RETURN_IF_ERROR(Send(*read));
    MUSTER_RETURN_IF_ERROR(
        Take(calls().rd_kafka_commit_transaction(handle_.get(), kCommitMillis), "committing"));
    begun_ = false;
    return absl::OkStatus();
  }

  std::vector<OffsetRange> GetWritten() const override {
    std::vector<OffsetRange> ranges;
    for (const auto& [partition, range] : written_) ranges.push_back(range);
    return ranges;
  }

 private:
  const RdKafka& calls() const { return handle_.calls(); }

  // Unless a transaction has begun.
  absl::Status Begin() {
    if (begun_) return absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(
        Take(calls().rd_kafka_begin_transaction(handle_.get()), "beginning a transaction"));
    begun_ = true;
    return absl::OkStatus();
  }

  // Adds to the transaction how far a group has read.
  absl::Status Send(const GroupOffset& read) {
    rd_kafka_topic_partition_list_t* const offsets = calls().rd_kafka_topic_partition_list_new(1);
    calls().rd_kafka_topic_partition_list_add(offsets, read.topic.c_str(), read.partition)->offset =
        read.offset;
    rd_kafka_consumer_group_metadata_t* const group =
        calls().rd_kafka_consumer_group_metadata_new(read.group.c_str());
    rd_kafka_error_t* const error =
        calls().rd_kafka_send_offsets_to_transaction(handle_.get(), offsets, group, kCommitMillis);
    calls().rd_kafka_consumer_group_metadata_destroy(group);
    calls().rd_kafka_topic_partition_list_destroy(offsets);
    return Take(error, StrCat("storing the offsets of group ", read.group));
  }

  static void Delivered(rd_kafka_t* /*handle*/, const rd_kafka_message_t* message, void* opaque) {
    auto* const self = static_cast<WriterImpl*>(opaque);
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) return self->CountWritten(*message);
    if (message->err == RD_KAFKA_RESP_ERR__PURGE_QUEUE ||
        message->err == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT) {
      self->has_ended_ = true;
      return;
    }
    if (!self->failed_.ok()) return;
    self->failed_ = self->Failed(message->err, StrCat("writing to topic ", self->spec_.name.topic));
  }

  // Why a message could not be stored, or why the brokers have ended the transaction.
  absl::Status Check() {
    if (!failed_.ok() || !has_ended_) return failed_;
    // A transaction that has ended says why when another one is begun.
    failed_ = Take(calls().rd_kafka_begin_transaction(handle_.get()),
                   StrCat("writing to topic ", spec_.name.topic));
    return failed_;
  }

  void CountWritten(const rd_kafka_message_t& message) {
    const OffsetRange one = {message.partition, message.offset, message.offset + 1};
    OffsetRange& range = written_.try_emplace(message.partition, one).first->second;
    range.begin = std::min(range.begin, one.begin);
    range.end = std::max(range.end, one.end);
  }

  absl::Status Failed(rd_kafka_resp_err_t error, std::string_view what) {
    if (error == RD_KAFKA_RESP_ERR__FATAL) {
      char text[kFatalErrorBytes] = "";
      error = calls().rd_kafka_fatal_error(handle_.get(), text, sizeof text);
    }
    if (error == RD_KAFKA_RESP_ERR__FENCED || error == RD_KAFKA_RESP_ERR_PRODUCER_FENCED ||
        error == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH) {
      return absl::AbortedError(
          StrCat("kafka://", spec_.name.brokers, ": ", what,
                 ": another writer with this transaction id has begun, and this one ends"));
    }
    return handle_.Failed(error, what);
  }

  // Destroys the error.
  absl::Status Take(rd_kafka_error_t* error, std::string_view what) {
    if (error == nullptr) return absl::OkStatus();
    absl::Status status = Failed(calls().rd_kafka_error_code(error), what);
    calls().rd_kafka_error_destroy(error);
    return status;
  }

  const KafkaWriterSpec spec_;
  KafkaHandle handle_;
  rd_kafka_topic_t* topic_ = nullptr;
  std::vector<int32_t> partitions_;
  bool begun_ = false;
  std::map<int32_t, OffsetRange> written_;
  bool has_ended_ = false;  // whether the brokers have ended the transaction
  absl::Status failed_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<KafkaWriter>> OpenKafkaWriter(const KafkaWriterSpec& spec,
                                                             const KafkaSettings& settings) {
  const KafkaName& name = spec.name;
  if (!(name == KafkaName{.brokers = name.brokers, .topic = name.topic})) {
    return absl::InvalidArgumentError(
        StrCat(PrintKafkaName(name), ": settings are of reading; give the topic alone"));
  }
  auto writer = std::make_unique<WriterImpl>(spec);
  MUSTER_RETURN_IF_ERROR(writer->Open(settings));
  return writer;
}

}  // namespace muster::data
