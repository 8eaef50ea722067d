// The data of kafka:// names (data/kafka/kafka_name.h), as a SourceSet. Items are partitions, and
// chunks are ranges of about kChunkBytes of their offsets.
//
// A record is the value of a message: a serialized tf.Example, a JSON object, or a row of CSV
// without a header. Which it is, SourceSpec::format says, or the first record shows. Records may
// have the framing of Confluent's schema registry before a JSON object; other framed records are
// refused. Messages without a value (deletions of a compacted topic) are no records.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/kafka/kafka_cluster.h"
#include "muster/data/source_set.h"

namespace muster::data {

// The most offsets of a chunk: so many if no record shows how long records are.
inline constexpr int64_t kMaxChunkOffsets = 1 << 20;

// Returns the set; nothing is connected yet. Add it to SourceSpec::schemes as kKafkaScheme. When
// `stop` is set, reads of silent brokers are given up (PartitionReader::Read).
std::shared_ptr<const SourceSet> NewKafkaSet(KafkaSettings settings,
                                             const std::atomic<bool>* stop = nullptr);

// Returns the names with the ranges of the records that exist now, and with the size of their
// chunks: they mean the same records, in the same chunks, for every process at every time. Names
// that are fixed already stay as they are. INVALID_ARGUMENT for a topic without records, or a name
// that is not of Kafka; FAILED_PRECONDITION for a topic that is compacted, unless its name allows
// it.
absl::StatusOr<std::vector<std::string>> FixKafkaNames(const std::vector<std::string>& names,
                                                       const KafkaSettings& settings);

// FAILED_PRECONDITION if the topic is compacted, unless its name allows it.
absl::Status CheckNotCompacted(KafkaCluster& cluster, const KafkaName& name);

// Returns a name with ranges of at most `most` offsets, the newest ones of all partitions. A name
// with ranges stays as it is.
absl::StatusOr<std::string> NameNewestRecords(const std::string& name, int64_t most,
                                              const KafkaSettings& settings);

}  // namespace muster::data
