// KafkaSource: the records of the partitions that a shard takes.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
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

// Gives the reader of a partition to one thread at a time, in the order in which they ask: to read
// elsewhere than after the last read drops the messages that were fetched already.
class ReadingTurns {
 public:
  // Asks for a turn that Begin takes, perhaps on another thread.
  void Ask(uint64_t offset);
  // Waits for its turn; asks for one now if Ask has not.
  void Begin(uint64_t offset);
  void End();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<uint64_t> line_;      // the first one reads, or will as soon as it begins
  std::multiset<uint64_t> asked_;  // of line_, those that have not begun to wait
  bool is_taken_ = false;
};

// Chunks whose memory is used again: that of a fresh one costs more than to copy messages into it.
class SpareChunks : public std::enable_shared_from_this<SpareChunks> {
 public:
  // Returns an empty chunk, which comes back here at its end.
  std::shared_ptr<Chunk> Take();

 private:
  void Keep(std::unique_ptr<Chunk> chunk);

  Mutex mutex_;
  std::vector<std::unique_ptr<Chunk>> chunks_ ABSL_GUARDED_BY(mutex_);
};

class KafkaSource : public RecordSource {
 public:
  // `partitions` are the items of the table. Brokers are connected when they are first read from.
  // `stop` as in PartitionReader::Read; it may be null. After a read that has failed all others
  // fail, without waiting for the brokers once more.
  KafkaSource(ChunkTable table, std::vector<KafkaPartition> partitions, KafkaRecords records,
              KafkaSettings settings, const std::atomic<bool>* stop = nullptr);
  ~KafkaSource() override;

  const std::vector<std::string>& files() const override { return table_.names; }
  const std::vector<ChunkInfo>& chunks() const override { return table_.chunks; }
  void WillRead(size_t chunk) const override;
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
  // A partition, for all threads.
  struct Lane {
    ReadingTurns turns;
    std::unique_ptr<PartitionReader> reader;  // of the thread whose turn it is
  };

  absl::Status ReadRange(size_t partition, uint64_t begin, uint64_t end,
                         const PartitionReader::Take& take) const;
  absl::StatusOr<KafkaCluster*> Connect(const std::string& brokers) const;
  absl::Status ReadInTurn(const KafkaPartition& partition, Lane& lane, uint64_t begin, uint64_t end,
                          const PartitionReader::Take& take) const;
  absl::Status GetFailure() const;
  absl::StatusOr<std::unique_ptr<formats::RowDecoder>> NewFormatDecoder(
      const formats::Schema& schema) const;

  const ChunkTable table_;
  const std::vector<KafkaPartition> partitions_;
  const KafkaRecords records_;
  const KafkaSettings settings_;
  const std::atomic<bool>* const stop_;
  const std::shared_ptr<SpareChunks> spare_ = std::make_shared<SpareChunks>();
  mutable Mutex mutex_;
  mutable std::map<std::string, std::unique_ptr<KafkaCluster>> clusters_ ABSL_GUARDED_BY(mutex_);
  mutable absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // of the first read that has failed
  mutable std::vector<Lane> lanes_;  // by partition; after clusters_, which outlive the readers
};

}  // namespace muster::data
