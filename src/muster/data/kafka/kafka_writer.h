// KafkaWriter: messages in transactions, in the partitions of one topic. Readers of committed
// records see all messages of a transaction after Commit(), or none. See Kafka's KIP-98.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/kafka/kafka_handle.h"
#include "muster/data/kafka/kafka_name.h"

namespace muster::data {

// What is written, and how.
struct KafkaWriterSpec {
  KafkaName name;  // without ranges
  std::string transaction_id;
  // How long a transaction may take. The records of a writer that has ended without a word block
  // readers of committed records until this has passed, or until its successor begins.
  std::chrono::seconds longest =
      std::chrono::minutes(15);  // the most that brokers allow by default
  bool make_topic = false;       // if there is none
  int partitions = 0;            // of a topic that is made; 0: as the brokers' settings say
};

// How far a consumer group has read a partition.
struct GroupOffset {
  std::string group;
  std::string topic;
  int32_t partition = 0;
  int64_t offset = 0;  // of the record that it reads next
};

// One owner thread.
class KafkaWriter {
 public:
  virtual ~KafkaWriter() = default;  // takes back what was not committed
  // Ascending, at least one.
  virtual const std::vector<int32_t>& partitions() const = 0;
  // Copies the value and the key. Waits while too much has not been sent. Errors are also those of
  // messages before.
  virtual absl::Status Append(int32_t partition, std::string_view value,
                              std::optional<std::string_view> key = std::nullopt) = 0;
  // Waits until all messages are stored; the next message begins another transaction. `read`, if it
  // is not null, is stored in the same transaction. ABORTED if another writer of this transaction
  // id has begun.
  virtual absl::Status Commit(const GroupOffset* read = nullptr) = 0;
  // The offsets of all messages that were stored, from the first to the last, by partition.
  virtual std::vector<OffsetRange> GetWritten() const = 0;
};

// Begins a transaction. A writer that begins later with the same transaction id ends this one: it
// can store nothing any more. NOT_FOUND for an unknown topic.
absl::StatusOr<std::unique_ptr<KafkaWriter>> OpenKafkaWriter(const KafkaWriterSpec& spec,
                                                             const KafkaSettings& settings);

}  // namespace muster::data
