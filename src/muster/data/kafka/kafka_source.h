// KafkaSource: the records of the partitions that a shard takes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "muster/base/mutex.h"
#include "muster/data/chunk_table.h"
#include "muster/data/kafka/kafka_cluster.h"
#include "muster/data/kafka/message_records.h"
#include "muster/data/source.h"

namespace muster::data {

// A partition whose records are read.
struct KafkaPartition {
  std::string brokers;
  std::string topic;
  int32_t partition = 0;
};

class KafkaSource : public RecordSource {
 public:
  // `partitions` are the items of the table. Brokers are connected when they are first read from.
  KafkaSource(ChunkTable table, std::vector<KafkaPartition> partitions, KafkaRecords records,
              KafkaSettings settings);
  ~KafkaSource() override;

  const std::vector<std::string>& files() const override { return table_.names; }
  const std::vector<ChunkInfo>& chunks() const override { return table_.chunks; }
  absl::StatusOr<std::shared_ptr<const Chunk>> Read(size_t chunk) const override;
  absl::StatusOr<std::unique_ptr<ChunkStream>> Stream(size_t chunk) const override;
  absl::Status CountBad(size_t chunk, const Chunk& piece) const override;
  formats::DataFormat format() const override {
    return {.type = records_.format, .columns = records_.columns};
  }
  absl::StatusOr<std::unique_ptr<formats::RowDecoder>> NewDecoder(
      const formats::Schema& schema) const override;
  uint64_t bad_records() const override { return 0; }
  bool has_offsets() const override { return true; }
  uint64_t fingerprint() const override { return table_.fingerprint; }

 private:
  // Reads one partition at a time for all threads.
  struct Lane {
    Mutex mutex;
    std::unique_ptr<PartitionReader> reader ABSL_GUARDED_BY(mutex);
  };

  absl::StatusOr<KafkaCluster*> Connect(const std::string& brokers) const;

  const ChunkTable table_;
  const std::vector<KafkaPartition> partitions_;
  const KafkaRecords records_;
  const KafkaSettings settings_;
  mutable Mutex mutex_;
  mutable std::map<std::string, std::unique_ptr<KafkaCluster>> clusters_ ABSL_GUARDED_BY(mutex_);
  mutable std::vector<Lane> lanes_;  // by partition; after clusters_, which outlive the readers
};

}  // namespace muster::data
