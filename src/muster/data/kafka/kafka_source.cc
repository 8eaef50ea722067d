#include "muster/data/kafka/kafka_source.h"

#include <utility>

#include "muster/base/strings.h"
#include "muster/formats/csv.h"
#include "muster/formats/example.h"
#include "muster/formats/json_lines.h"

namespace muster::data {
namespace {

// A chunk has kChunkBytes by the first records of its topic, and others may be longer.
constexpr size_t kUsualChunkBytes = kChunkBytes + kChunkBytes / 4;

absl::Status UnnamedCells(const std::string& where) {
  return absl::InvalidArgumentError(
      StrCat(where.empty() ? "the topic" : where,
             ": is a row of CSV, which has no header in a topic: name its cells with --columns "
             "A,B,..., or give --no-header if they are the model's inputs in their order"));
}

}  // namespace

KafkaSource::KafkaSource(ChunkTable table, std::vector<KafkaPartition> partitions,
                         KafkaRecords records, KafkaSettings settings)
    : table_(std::move(table)),
      partitions_(std::move(partitions)),
      records_(std::move(records)),
      settings_(std::move(settings)),
      lanes_(partitions_.size()) {}

KafkaSource::~KafkaSource() = default;

absl::StatusOr<KafkaCluster*> KafkaSource::Connect(const std::string& brokers) const {
  const MutexLock lock(&mutex_);
  std::unique_ptr<KafkaCluster>& cluster = clusters_[brokers];
  if (cluster == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(cluster, KafkaCluster::Connect(brokers, settings_));
  }
  return cluster.get();
}

absl::StatusOr<std::shared_ptr<const Chunk>> KafkaSource::Read(size_t number) const {
  const ChunkInfo& info = table_.chunks[number];
  const auto file = static_cast<size_t>(info.file);
  const KafkaPartition& partition = partitions_[file];
  auto chunk = std::make_shared<Chunk>();
  chunk->file = table_.names[file];
  chunk->place = RecordPlace::kOffset;
  chunk->first_number = info.first_number;
  MessageRecords records(records_);
  std::vector<size_t> sizes;
  std::vector<std::optional<size_t>> key_sizes;
  sizes.reserve(info.records);
  key_sizes.reserve(info.records);
  chunk->offsets.reserve(info.records);
  chunk->records.reserve(info.records);
  chunk->bytes.reserve(kUsualChunkBytes);
  bool has_keys = false;
  const auto take = [&](const KafkaMessage& message) {
    if (message.is_deletion) return true;
    const size_t before = chunk->bytes.size();
    records.Append(message, &chunk->bytes);
    sizes.push_back(chunk->bytes.size() - before);
    chunk->offsets.push_back(static_cast<uint64_t>(message.offset));
    std::optional<size_t>& key_size = key_sizes.emplace_back();
    if (!message.key) return true;
    has_keys = true;
    key_size = message.key->size();
    chunk->bytes.append(*message.key);
    return true;
  };
  const uint64_t begin = info.begin + info.first_record;
  Lane& lane = lanes_[file];
  {
    const MutexLock lock(&lane.mutex);
    if (lane.reader == nullptr) {
      MUSTER_ASSIGN_OR_RETURN(KafkaCluster* const cluster, Connect(partition.brokers));
      MUSTER_ASSIGN_OR_RETURN(lane.reader,
                              cluster->OpenPartition(partition.topic, partition.partition,
                                                     records_.added.HeaderNames()));
    }
    MUSTER_RETURN_IF_ERROR(lane.reader->Read(static_cast<int64_t>(begin),
                                             static_cast<int64_t>(begin + info.records), take));
  }
  const char* data = chunk->bytes.data();
  for (size_t i = 0; i < sizes.size(); ++i) {
    chunk->records.emplace_back(data, sizes[i]);
    data += sizes[i];
    if (!has_keys) continue;
    std::optional<std::string_view>& key = chunk->keys.emplace_back();
    if (!key_sizes[i]) continue;
    key = std::string_view(data, *key_sizes[i]);
    data += *key_sizes[i];
  }
  return chunk;
}

absl::StatusOr<std::unique_ptr<ChunkStream>> KafkaSource::Stream(size_t chunk) const {
  return NewOnePieceStream(*this, chunk);
}

absl::Status KafkaSource::CountBad(size_t /*chunk*/, const Chunk& /*piece*/) const {
  return absl::OkStatus();  // brokers and librdkafka check the sums of batches
}

absl::StatusOr<std::unique_ptr<formats::RowDecoder>> KafkaSource::NewDecoder(
    const formats::Schema& schema) const {
  switch (records_.format) {
    case FileFormat::kTfRecord:
      return formats::NewExampleDecoder(schema);
    case FileFormat::kJsonLines:
      return formats::NewJsonDecoder(schema);
    case FileFormat::kCsv:
      if (records_.columns.empty()) return UnnamedCells(records_.where);
      return formats::NewCsvDecoder(schema, {records_.columns}, records_.csv);
  }
  return absl::InternalError("unknown format of records");
}

}  // namespace muster::data
