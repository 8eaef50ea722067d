#include "muster/cli/train/predict_topic.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "muster/base/strings.h"
#include "muster/cli/train/kafka_ranges.h"
#include "muster/data/kafka/kafka_cluster.h"
#include "muster/data/kafka/kafka_group.h"
#include "muster/data/kafka/kafka_name.h"
#include "muster/data/kafka/kafka_writer.h"
#include "muster/score/prediction_rows.h"

namespace muster::cli {
namespace {

// A transaction ends after so many rows, or so much time. Readers of committed records wait for it.
constexpr int kTransactionRows = 10'000;
constexpr int64_t kTransactionNanos = 1'000'000'000;
// Without a word of its writer the brokers take a transaction back after this time.
constexpr auto kLongestTransaction = std::chrono::minutes(1);
constexpr char kRecordKey[] = "record";  // the name of the key of rows without a key

// The topic that is written, and what writes to it.
struct Sink {
  data::KafkaName name = {};
  std::string group = {};
  data::KafkaSettings settings = {};
};

// The predictions of one partition, in transactions.
class PartitionOutput {
 public:
  PartitionOutput(const Sink& sink, const Clock& clock, std::string topic, int32_t partition)
      : sink_(sink),
        clock_(clock),
        topic_(std::move(topic)),
        partition_(partition),
        read_{.group = sink.group, .topic = topic_, .partition = partition} {}

  // Ends what an earlier process of this partition has begun.
  absl::Status Open(const score::PredictionWriter::Options& rows,
                    const engine::Predictor& predictor) {
    MUSTER_ASSIGN_OR_RETURN(values_, score::PredictionValues::Create(rows, predictor));
    data::KafkaWriterSpec spec = {
        .name = sink_.name,
        .transaction_id = StrCat("muster-", sink_.group, "-", topic_, "-", partition_),
        .longest = kLongestTransaction};
    MUSTER_ASSIGN_OR_RETURN(writer_, data::OpenKafkaWriter(spec, sink_.settings));
    const auto& partitions = writer_->partitions();
    to_ = partitions[static_cast<size_t>(partition_) % partitions.size()];
    return absl::OkStatus();
  }

  absl::Status Write(const train::InputBatch& batch, std::vector<std::string> keys,
                     const engine::Predictions& predictions) {
    MUSTER_ASSIGN_OR_RETURN(const auto values, values_->Encode(keys, predictions));
    if (rows_ == 0) begun_ = clock_.MonotonicNanos();
    for (size_t row = 0; row < values.size(); ++row) {
      MUSTER_RETURN_IF_ERROR(writer_->Append(to_, values[row], batch.messages[row].key));
    }
    rows_ += static_cast<int>(values.size());
    const bool is_due =
        rows_ >= kTransactionRows || clock_.MonotonicNanos() - begun_ >= kTransactionNanos;
    if (!is_due) return absl::OkStatus();
    return Commit(static_cast<int64_t>(batch.messages.back().offset) + 1);
  }

  // `offset` is that of the next record to predict.
  absl::Status Commit(int64_t offset) {
    rows_ = 0;
    read_.offset = offset;
    return writer_->Commit(&read_);
  }

 private:
  const Sink& sink_;
  const Clock& clock_;
  const std::string topic_;
  const int32_t partition_;
  data::GroupOffset read_;
  std::unique_ptr<data::KafkaWriter> writer_;
  std::unique_ptr<score::PredictionValues> values_;
  int32_t to_ = 0;
  int rows_ = 0;  // of this transaction
  int64_t begun_ = 0;
};

// Predicts what the group has not read of a partition; nothing if it has read all of the range.
absl::StatusOr<std::optional<train::PredictResult>> PredictPartition(
    const TopicPrediction& spec, const Sink& sink, const data::KafkaName& input,
    const data::OffsetRange& range, TrainedModel& model, train::Progress& progress) {
  const std::string partition = data::PartitionName(input.topic, range.partition);
  train::Estimator& estimator = *model.estimator;
  PartitionOutput output(sink, model.clock, input.topic, range.partition);
  score::PredictionWriter::Options rows = spec.rows;
  const bool has_key = !rows.key.empty();
  if (!has_key) rows.key = kRecordKey;
  MUSTER_RETURN_IF_ERROR(output.Open(rows, estimator.predictor()));
  MUSTER_ASSIGN_OR_RETURN(const auto group,
                          data::KafkaGroup::Open(input.brokers, sink.group, sink.settings));
  MUSTER_ASSIGN_OR_RETURN(const std::optional<int64_t> read,
                          group->FindOffset(input.topic, range.partition));
  data::KafkaName name = input;
  name.ranges = {range};
  int64_t& begin = name.ranges[0].begin;
  if (read) begin = std::max(begin, *read);
  if (begin >= range.end) return std::nullopt;
  train::PredictSpec predict = {
      .input = SequentialInput(spec.data, estimator.model().spec.format, kInferenceBatchSize),
      .reject = spec.reject};
  predict.input.source.patterns = {data::PrintKafkaName(name)};
  predict.input.source.may_be_empty = true;
  predict.input.with_labels = false;
  predict.input.with_keys = has_key;
  predict.input.with_messages = true;
  const auto write = [&](const train::InputBatch& batch, const engine::Predictions& predictions) {
    std::vector<std::string> keys = batch.keys;
    if (!has_key) {
      for (const data::MessageId& message : batch.messages) {
        keys.push_back(StrCat(partition, ":", message.offset));
      }
    }
    return output.Write(batch, std::move(keys), predictions);
  };
  MUSTER_ASSIGN_OR_RETURN(const train::PredictResult result,
                          estimator.Predict(predict, write, progress));
  MUSTER_RETURN_IF_ERROR(output.Commit(range.end));
  return result;
}

// Returns the ranges of the records that exist now, or those of the name.
absl::StatusOr<std::vector<data::OffsetRange>> FindRanges(data::KafkaCluster& cluster,
                                                          const data::KafkaName& input) {
  if (input.is_fixed()) return input.ranges;
  std::vector<data::OffsetRange> ranges;
  MUSTER_ASSIGN_OR_RETURN(const auto partitions, cluster.ListPartitions(input.topic));
  for (const int32_t partition : partitions) {
    MUSTER_ASSIGN_OR_RETURN(ranges.emplace_back(), cluster.FindRange(input.topic, partition));
  }
  return ranges;
}

}  // namespace

absl::Status CheckTopicPrediction(const DataFlags& data, const std::string& out,
                                  const std::string& group) {
  MUSTER_ASSIGN_OR_RETURN(const data::KafkaName to, data::ParseKafkaName(out));
  for (const std::string& pattern : data.patterns) {
    if (!IsTopic(pattern)) {
      return absl::InvalidArgumentError(StrCat(
          "--out ", out, ": into a topic go the predictions of a topic's records, but --data ",
          pattern, " is none; predict into a file, and write it with muster records to-kafka"));
    }
    MUSTER_ASSIGN_OR_RETURN(const data::KafkaName from, data::ParseKafkaName(pattern));
    if (from.topic == to.topic && from.brokers == to.brokers) {
      return absl::InvalidArgumentError(
          StrCat("--out ", out, " is the topic of --data: give another topic"));
    }
  }
  if (!group.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("--out ", out,
             " needs --group NAME: the consumer group that keeps which records are "
             "predicted, so that the same command continues"));
}

absl::Status FixRanges(DataFlags* data, std::vector<std::string>* arguments) {
  MUSTER_ASSIGN_OR_RETURN(const data::KafkaSettings settings, ReadKafkaSettings(data->kafka));
  for (std::string& pattern : data->patterns) {
    MUSTER_ASSIGN_OR_RETURN(data::KafkaName name, data::ParseKafkaName(pattern));
    MUSTER_ASSIGN_OR_RETURN(const auto cluster,
                            data::KafkaCluster::Connect(name.brokers, settings));
    MUSTER_ASSIGN_OR_RETURN(name.ranges, FindRanges(*cluster, name));
    const std::string fixed = data::PrintKafkaName(name);
    ReplaceWord(pattern, fixed, arguments);
    pattern = fixed;
  }
  return absl::OkStatus();
}

absl::StatusOr<train::PredictResult> PredictIntoTopic(const TopicPrediction& spec,
                                                      TrainedModel& model,
                                                      train::Progress& progress) {
  Sink sink = {.group = spec.group};
  MUSTER_ASSIGN_OR_RETURN(sink.name, data::ParseKafkaName(spec.out));
  MUSTER_ASSIGN_OR_RETURN(sink.settings, ReadKafkaSettings(spec.data.kafka));
  MUSTER_ASSIGN_OR_RETURN(const auto to,
                          data::KafkaCluster::Connect(sink.name.brokers, sink.settings));
  MUSTER_RETURN_IF_ERROR(to->ListPartitions(sink.name.topic).status());
  MUSTER_ASSIGN_OR_RETURN(const std::string cluster_id, to->GetId());
  train::PredictResult sum;
  int number = 0;  // of the partition, among those of all topics
  for (const std::string& pattern : spec.data.patterns) {
    MUSTER_ASSIGN_OR_RETURN(const data::KafkaName input, data::ParseKafkaName(pattern));
    MUSTER_ASSIGN_OR_RETURN(const auto from,
                            data::KafkaCluster::Connect(input.brokers, sink.settings));
    MUSTER_ASSIGN_OR_RETURN(const auto ranges, FindRanges(*from, input));
    MUSTER_ASSIGN_OR_RETURN(const std::string from_id, from->GetId());
    if (from_id != cluster_id) {
      return absl::InvalidArgumentError(
          StrCat(pattern, " and --out ", spec.out,
                 " are in two clusters of Kafka, which no transaction can span; predict into a "
                 "file, and write it with muster records to-kafka"));
    }
    for (const data::OffsetRange& range : ranges) {
      if (spec.parts.task >= 0 && number++ % spec.parts.workers != spec.parts.task) continue;
      MUSTER_ASSIGN_OR_RETURN(const auto result,
                              PredictPartition(spec, sink, input, range, model, progress));
      if (!result) continue;
      // A newer one may exist when the next partition begins.
      model.estimator->set_checkpoint(result->checkpoint);
      sum.step = result->step;
      sum.checkpoint = result->checkpoint;
      sum.examples += result->examples;
      sum.bad_records += result->bad_records;
    }
  }
  return sum;
}

}  // namespace muster::cli
