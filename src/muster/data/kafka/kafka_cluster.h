// KafkaCluster: a connection to the brokers of a Kafka cluster, for reading. Nothing is committed,
// and there is no consumer group: whoever reads says from which offset.
//
// Only committed records are read (isolation.level=read_committed). Offsets of aborted transactions
// and of their marks have no record, nor have those that compaction removed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/kafka/kafka_handle.h"
#include "muster/data/kafka/kafka_name.h"

namespace muster::data {

struct KafkaMessage {
  int64_t offset = 0;
  std::string_view value = {};
  std::optional<std::string_view> key = {};
  int64_t timestamp_ms = -1;  // since 1970; -1: it has none
  // The last values of the headers that OpenPartition was told, in the same order.
  std::span<const std::optional<std::string_view>> headers = {};
  bool is_deletion =
      false;  // a message without a value, which removes a key from a compacted topic
};

// Reads one partition. One owner thread.
class PartitionReader {
 public:
  virtual ~PartitionReader() = default;
  // Calls `take` with each message whose offset is in [begin, end), in order, until it returns
  // false. Reading on where the last call ended costs no new request. A message's value is valid
  // during the call. OUT_OF_RANGE if the partition no longer has `begin`, with its first offset;
  // UNAVAILABLE if the brokers are silent for a minute, or if the partition ends before `end`;
  // CANCELLED if `stop`, which may be null, is set while they are silent for a second.
  using Take = std::function<bool(const KafkaMessage&)>;
  virtual absl::Status Read(int64_t begin, int64_t end, const Take& take,
                            const std::atomic<bool>* stop) = 0;
};

// Thread-safe.
class KafkaCluster {
 public:
  // `brokers` as in KafkaName. INVALID_ARGUMENT for a setting that librdkafka does not know, or
  // that is decided here.
  static absl::StatusOr<std::unique_ptr<KafkaCluster>> Connect(const std::string& brokers,
                                                               const KafkaSettings& settings);
  virtual ~KafkaCluster() = default;

  // The cluster's id, which no other one has.
  virtual absl::StatusOr<std::string> GetId() = 0;
  // NOT_FOUND for an unknown topic, with the names that are near.
  virtual absl::StatusOr<std::vector<int32_t>> ListPartitions(const std::string& topic) = 0;
  // The offsets that can be read now.
  virtual absl::StatusOr<OffsetRange> FindRange(const std::string& topic, int32_t partition) = 0;
  // OUT_OF_RANGE if a partition ends before its range, with both offsets. Waits some seconds for
  // records whose transaction was just committed.
  virtual absl::Status CheckEnds(const KafkaName& name) = 0;
  // Whether compaction may remove records of the topic. A user who may not see the topic's settings
  // is told false.
  virtual absl::StatusOr<bool> IsCompacted(const std::string& topic) = 0;
  // `headers` are those that messages are given with. There may be one reader of a partition at a
  // time. The cluster must outlive it.
  virtual absl::StatusOr<std::unique_ptr<PartitionReader>> OpenPartition(
      const std::string& topic, int32_t partition, std::vector<std::string> headers = {}) = 0;
};

}  // namespace muster::data
