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
constexpr size_t kMostSpareChunks = 8;

absl::Status UnnamedCells(const std::string& where) {
  return absl::InvalidArgumentError(
      StrCat(where.empty() ? "the topic" : where,
             ": is a row of CSV, which has no header in a topic: name its cells with --columns "
             "A,B,..., or give --no-header if they are the model's inputs in their order"));
}

}  // namespace

std::shared_ptr<Chunk> SpareChunks::Take() {
  std::unique_ptr<Chunk> chunk;
  {
    const MutexLock lock(&mutex_);
    if (!chunks_.empty()) {
      chunk = std::move(chunks_.back());
      chunks_.pop_back();
    }
  }
  if (chunk == nullptr) chunk = std::make_unique<Chunk>();
  return {chunk.release(),
          [home = shared_from_this()](Chunk* used) { home->Keep(std::unique_ptr<Chunk>(used)); }};
}

void SpareChunks::Keep(std::unique_ptr<Chunk> chunk) {
  chunk->records.clear();
  chunk->offsets.clear();
  chunk->bytes.clear();
  chunk->keys.clear();
  const MutexLock lock(&mutex_);
  if (chunks_.size() < kMostSpareChunks) chunks_.push_back(std::move(chunk));
}

void ReadingTurns::Ask(uint64_t offset) {
  const std::lock_guard lock(mutex_);
  line_.push_back(offset);
  asked_.insert(offset);
}

void ReadingTurns::Begin(uint64_t offset) {
  std::unique_lock lock(mutex_);
  if (const auto asked = asked_.find(offset); asked != asked_.end()) {
    asked_.erase(asked);
  } else {
    line_.push_back(offset);
  }
  changed_.wait(lock, [&] { return !is_taken_ && line_.front() == offset; });
  is_taken_ = true;
}

void ReadingTurns::End() {
  {
    const std::lock_guard lock(mutex_);
    is_taken_ = false;
    line_.pop_front();
  }
  changed_.notify_all();
}

KafkaSource::KafkaSource(ChunkTable table, std::vector<KafkaPartition> partitions,
                         KafkaRecords records, KafkaSettings settings,
                         const std::atomic<bool>* stop)
    : table_(std::move(table)),
      partitions_(std::move(partitions)),
      records_(std::move(records)),
      settings_(std::move(settings)),
      stop_(stop),
      lanes_(partitions_.size()) {}

KafkaSource::~KafkaSource() {
  const MutexLock lock(&mutex_);
  if (failure_.ok()) return;
  // librdkafka may wait without end to destroy a client that has read from a deleted topic: clients
  // whose reads have failed live as long as the process.
  for (auto& [brokers, cluster] : clusters_) static_cast<void>(cluster.release());
}

absl::StatusOr<KafkaCluster*> KafkaSource::Connect(const std::string& brokers) const {
  const MutexLock lock(&mutex_);
  std::unique_ptr<KafkaCluster>& cluster = clusters_[brokers];
  if (cluster == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(cluster, KafkaCluster::Connect(brokers, settings_));
  }
  return cluster.get();
}

void KafkaSource::WillRead(size_t number) const {
  const ChunkInfo& info = table_.chunks[number];
  lanes_[static_cast<size_t>(info.file)].turns.Ask(info.begin + info.first_record);
}

absl::StatusOr<std::shared_ptr<const Chunk>> KafkaSource::Read(size_t number) const {
  const ChunkInfo& info = table_.chunks[number];
  const auto file = static_cast<size_t>(info.file);
  const std::shared_ptr<Chunk> chunk = spare_->Take();
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
  MUSTER_RETURN_IF_ERROR(ReadRange(file, begin, begin + info.records, take));
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

absl::Status KafkaSource::ReadRange(size_t number, uint64_t begin, uint64_t end,
                                    const PartitionReader::Take& take) const {
  Lane& lane = lanes_[number];
  lane.turns.Begin(begin);
  absl::Status status = GetFailure();
  if (status.ok()) {
    status = ReadInTurn(partitions_[number], lane, begin, end, take);
    const MutexLock lock(&mutex_);
    failure_.Update(status);
  }
  lane.turns.End();
  return status;
}

absl::Status KafkaSource::ReadInTurn(const KafkaPartition& partition, Lane& lane, uint64_t begin,
                                     uint64_t end, const PartitionReader::Take& take) const {
  if (lane.reader == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(KafkaCluster* const cluster, Connect(partition.brokers));
    MUSTER_ASSIGN_OR_RETURN(
        lane.reader,
        cluster->OpenPartition(partition.topic, partition.partition, records_.added.HeaderNames()));
  }
  return lane.reader->Read(static_cast<int64_t>(begin), static_cast<int64_t>(end), take, stop_);
}

absl::Status KafkaSource::GetFailure() const {
  const MutexLock lock(&mutex_);
  return failure_;
}

absl::StatusOr<std::unique_ptr<ChunkStream>> KafkaSource::Stream(size_t chunk) const {
  return NewOnePieceStream(*this, chunk);
}

absl::Status KafkaSource::CountBad(size_t /*chunk*/, const Chunk& /*piece*/) const {
  return absl::OkStatus();  // brokers and librdkafka check the sums of batches
}

absl::StatusOr<std::unique_ptr<formats::RowDecoder>> KafkaSource::NewDecoder(
    const formats::Schema& schema) const {
  MUSTER_ASSIGN_OR_RETURN(auto decoder, NewFormatDecoder(schema));
  return NewTopicDecoder(std::move(decoder), records_);
}

absl::StatusOr<std::unique_ptr<formats::RowDecoder>> KafkaSource::NewFormatDecoder(
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
