#include "muster/data/kafka/kafka_set.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "muster/base/strings.h"
#include "muster/data/kafka/kafka_source.h"
#include "muster/formats/csv.h"
#include "muster/formats/sniff.h"

namespace muster::data {
namespace {

constexpr int kPeekedRecords = 200;
constexpr char kSchemaByte = '\0';

// A topic whose ranges are known.
struct Topic {
  KafkaName name;
  std::string cluster_id;

  int64_t size() const {
    int64_t sum = 0;
    for (const OffsetRange& range : name.ranges) sum += range.end - range.begin;
    return sum;
  }
};

absl::StatusOr<Topic> FindTopic(KafkaCluster& cluster, KafkaName name) {
  MUSTER_ASSIGN_OR_RETURN(const auto partitions, cluster.ListPartitions(name.topic));
  for (const OffsetRange& range : name.ranges) {
    if (std::binary_search(partitions.begin(), partitions.end(), range.partition)) continue;
    return absl::NotFoundError(StrCat(PrintKafkaName(name), ": the topic has no partition ",
                                      range.partition, ", but 0 to ", partitions.back()));
  }
  if (!name.is_fixed()) {
    for (const int32_t partition : partitions) {
      MUSTER_ASSIGN_OR_RETURN(name.ranges.emplace_back(), cluster.FindRange(name.topic, partition));
    }
  }
  MUSTER_ASSIGN_OR_RETURN(std::string id, cluster.GetId());
  return Topic{.name = std::move(name), .cluster_id = std::move(id)};
}

// The first records of a topic's ranges.
struct Peeked {
  std::string first;     // the value of the first record that is none of CSV's header
  std::string where;     // for messages
  uint64_t bytes = 0;    // of all that were read
  uint64_t offsets = 0;  // that they took
};

absl::StatusOr<Peeked> Peek(KafkaCluster& cluster, const Topic& topic) {
  Peeked peeked;
  for (const OffsetRange& range : topic.name.ranges) {
    if (range.begin == range.end) continue;
    MUSTER_ASSIGN_OR_RETURN(const auto reader,
                            cluster.OpenPartition(topic.name.topic, range.partition));
    int records = 0;
    const auto take = [&](const KafkaMessage& message) {
      peeked.bytes += message.value.size();
      peeked.offsets =
          std::max(peeked.offsets, static_cast<uint64_t>(message.offset - range.begin) + 1);
      if (peeked.where.empty() && !message.is_deletion) {
        peeked.first = message.value;
        peeked.where =
            StrCat(PartitionName(topic.name.topic, range.partition), ": offset ", message.offset);
      }
      return ++records < kPeekedRecords;
    };
    MUSTER_RETURN_IF_ERROR(reader->Read(range.begin, range.end, take, nullptr));
    if (!peeked.where.empty()) return peeked;
  }
  return peeked;
}

int64_t ChunkOffsets(const Peeked& peeked) {
  if (peeked.bytes == 0) return kMaxChunkOffsets;
  const auto offsets = static_cast<int64_t>(kChunkBytes * peeked.offsets / peeked.bytes);
  return std::clamp<int64_t>(offsets, 1, kMaxChunkOffsets);
}

bool IsFramed(std::string_view value) {
  return value.size() > kFramingBytes && value[0] == kSchemaByte;
}

absl::StatusOr<FileFormat> FindRecordFormat(const Peeked& peeked,
                                            const formats::DataFormat& given) {
  const std::string_view first = peeked.first;
  if (IsFramed(first) && first[kFramingBytes] != '{') {
    uint32_t schema = 0;
    for (size_t i = 1; i < kFramingBytes; ++i) {
      schema = schema << 8 | static_cast<uint8_t>(first[i]);
    }
    return absl::InvalidArgumentError(
        StrCat(peeked.where, ": is framed as Avro or Protobuf of schema ", schema,
               " of a schema registry, which is not read: write the topic as JSON (Confluent's "
               "JsonSchemaSerializer, or value.converter JsonConverter) or as tf.Example"));
  }
  if (given.type) return *given.type;
  return RecognizeRecord(StripFraming(first)).value_or(FileFormat::kCsv);
}

absl::Status NoRecords(const std::string& name) {
  return absl::InvalidArgumentError(StrCat(
      name, ": has no records; write some (muster records to-kafka FILES --to NAME), or let ",
      "a training wait for them (muster train --follow)"));
}

absl::StatusOr<KafkaRecords> FindRecords(const Peeked& peeked, const formats::DataFormat& given,
                                         const MessageColumns& added) {
  KafkaRecords records = {.added = added};
  MUSTER_ASSIGN_OR_RETURN(records.format, FindRecordFormat(peeked, given));
  records.where = peeked.where;
  records.is_given = given.type.has_value();
  if (records.format != FileFormat::kCsv) return records;
  formats::DataFormat format = given;
  format.header = false;
  const std::vector<std::string> names = added.Names();
  if (!given.columns.empty()) {
    std::ranges::copy_if(
        given.columns, std::back_inserter(records.columns),
        [&](const std::string& column) { return std::ranges::find(names, column) == names.end(); });
    records.columns.insert(records.columns.end(), names.begin(), names.end());
  }
  records.csv = format.csv(formats::GuessDelimiter(peeked.first, /*whole=*/true, format).byte);
  return records;
}

RecordIndex MakeIndex(const OffsetRange& range, int64_t chunk) {
  RecordIndex index;
  index.end = static_cast<uint64_t>(range.end);
  index.file_size = static_cast<uint64_t>(range.end - range.begin);
  for (int64_t begin = range.begin; begin < range.end; begin += chunk) {
    index.chunks.push_back({.begin = static_cast<uint64_t>(begin),
                            .records = static_cast<uint64_t>(std::min(chunk, range.end - begin))});
  }
  return index;
}

class KafkaSet : public SourceSet {
 public:
  KafkaSet(KafkaSettings settings, const std::atomic<bool>* stop)
      : settings_(std::move(settings)), stop_(stop) {}

  absl::StatusOr<std::vector<SourceItem>> List(
      const std::vector<std::string>& patterns) const override {
    std::vector<SourceItem> items;
    for (const std::string& pattern : patterns) {
      MUSTER_ASSIGN_OR_RETURN(KafkaName name, ParseKafkaName(pattern));
      MUSTER_ASSIGN_OR_RETURN(const auto cluster, KafkaCluster::Connect(name.brokers, settings_));
      MUSTER_ASSIGN_OR_RETURN(const Topic topic, FindTopic(*cluster, std::move(name)));
      for (const OffsetRange& range : topic.name.ranges) {
        const std::string partition = PartitionName(topic.name.topic, range.partition);
        items.push_back({.kind = SourceItem::Kind::kPartition,
                         .name = partition,
                         .common_name = partition,
                         .begin = static_cast<uint64_t>(range.begin),
                         .end = static_cast<uint64_t>(range.end),
                         .identity = topic.cluster_id});
      }
    }
    return items;
  }

  absl::StatusOr<bool> CanBeCut(const SourceItem& /*item*/,
                                const formats::DataFormat& /*format*/) const override {
    return true;
  }

  absl::StatusOr<uint64_t> CountRecords(const SourceItem& item,
                                        const formats::DataFormat& /*format*/) const override {
    return item.size();
  }

  absl::StatusOr<std::vector<std::unique_ptr<RecordSource>>> OpenShards(
      const SourceSpec& spec, std::span<const Shard> shards, uint64_t) const override {
    MUSTER_RETURN_IF_ERROR(formats::CheckDataFormat(spec.format));
    if (spec.patterns.empty()) return absl::InvalidArgumentError("no topic was given");
    std::vector<IndexedItem> items;
    std::vector<KafkaPartition> partitions;
    Peeked first;  // of the first topic that has records
    std::optional<MessageColumns> columns;
    for (const std::string& pattern : spec.patterns) {
      MUSTER_ASSIGN_OR_RETURN(KafkaName name, ParseKafkaName(pattern));
      if (columns && *columns != name.columns) {
        return absl::InvalidArgumentError(StrCat(
            pattern, ": has other columns of messages (key=, timestamp=, header.NAME=) than ",
            spec.patterns.front(), "; give all topics the same"));
      }
      columns = name.columns;
      MUSTER_ASSIGN_OR_RETURN(const auto cluster, KafkaCluster::Connect(name.brokers, settings_));
      const bool is_fixed = name.is_fixed();
      MUSTER_ASSIGN_OR_RETURN(const Topic topic, FindTopic(*cluster, std::move(name)));
      if (is_fixed) MUSTER_RETURN_IF_ERROR(cluster->CheckEnds(topic.name));
      Peeked peeked;
      if (topic.name.chunk == 0 || first.where.empty()) {
        MUSTER_ASSIGN_OR_RETURN(peeked, Peek(*cluster, topic));
        if (first.where.empty()) first = peeked;
      }
      const int64_t chunk = topic.name.chunk > 0 ? topic.name.chunk : ChunkOffsets(peeked);
      for (const OffsetRange& range : topic.name.ranges) {
        const std::string partition = PartitionName(topic.name.topic, range.partition);
        items.push_back({.name = partition,
                         .identity = StrCat(partition, "@", topic.cluster_id),
                         .size = static_cast<uint64_t>(range.end - range.begin),
                         .index = MakeIndex(range, chunk)});
        partitions.push_back({.brokers = topic.name.brokers,
                              .topic = topic.name.topic,
                              .partition = range.partition});
      }
    }
    if (first.where.empty() && !spec.may_be_empty) {
      return NoRecords(spec.patterns.front());
    }
    MUSTER_ASSIGN_OR_RETURN(const KafkaRecords records, FindRecords(first, spec.format, *columns));
    std::vector<std::unique_ptr<RecordSource>> sources;
    for (const Shard& shard : shards) {
      std::vector<IndexedItem> taken;
      std::vector<KafkaPartition> of_shard;
      for (size_t i = 0; i < items.size(); ++i) {
        if (!TakesItem(shard, i)) continue;
        taken.push_back(items[i]);
        of_shard.push_back(partitions[i]);
      }
      sources.push_back(
          std::make_unique<KafkaSource>(MakeChunkTable(taken, shard, spec.first_number),
                                        std::move(of_shard), records, settings_, stop_));
    }
    return sources;
  }

 private:
  const KafkaSettings settings_;
  const std::atomic<bool>* const stop_;
};

}  // namespace

absl::Status CheckNotCompacted(KafkaCluster& cluster, const KafkaName& name) {
  if (name.may_be_compacted) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const bool is_compacted, cluster.IsCompacted(name.topic));
  if (!is_compacted) return absl::OkStatus();
  KafkaName allowed = name;
  allowed.may_be_compacted = true;
  allowed.ranges.clear();
  return absl::FailedPreconditionError(
      StrCat("kafka://", name.brokers, "/", name.topic,
             ": compaction removes records of this topic (cleanup.policy), so a training that was "
             "stopped could not continue at the same record; read it with ",
             PrintKafkaName(allowed), ", and begin anew with --fresh-data if it was stopped"));
}

std::shared_ptr<const SourceSet> NewKafkaSet(KafkaSettings settings,
                                             const std::atomic<bool>* stop) {
  return std::make_shared<KafkaSet>(std::move(settings), stop);
}

absl::StatusOr<std::vector<std::string>> FixKafkaNames(const std::vector<std::string>& names,
                                                       const KafkaSettings& settings) {
  std::vector<std::string> fixed;
  for (const std::string& text : names) {
    MUSTER_ASSIGN_OR_RETURN(KafkaName name, ParseKafkaName(text));
    if (name.is_fixed() && name.chunk > 0) {
      fixed.push_back(text);
      continue;
    }
    MUSTER_ASSIGN_OR_RETURN(const auto cluster, KafkaCluster::Connect(name.brokers, settings));
    MUSTER_ASSIGN_OR_RETURN(Topic topic, FindTopic(*cluster, std::move(name)));
    MUSTER_RETURN_IF_ERROR(CheckNotCompacted(*cluster, topic.name));
    if (topic.size() == 0) return NoRecords(text);
    if (topic.name.chunk == 0) {
      MUSTER_ASSIGN_OR_RETURN(const Peeked peeked, Peek(*cluster, topic));
      topic.name.chunk = ChunkOffsets(peeked);
    }
    fixed.push_back(PrintKafkaName(topic.name));
  }
  return fixed;
}

absl::StatusOr<std::string> NameNewestRecords(const std::string& name, int64_t most,
                                              const KafkaSettings& settings) {
  MUSTER_ASSIGN_OR_RETURN(KafkaName parsed, ParseKafkaName(name));
  if (parsed.is_fixed()) return name;
  MUSTER_ASSIGN_OR_RETURN(const auto cluster, KafkaCluster::Connect(parsed.brokers, settings));
  MUSTER_ASSIGN_OR_RETURN(Topic topic, FindTopic(*cluster, std::move(parsed)));
  // What a short partition leaves is for the longer ones.
  std::vector<OffsetRange*> by_size;
  for (OffsetRange& range : topic.name.ranges) by_size.push_back(&range);
  std::ranges::sort(by_size, {},
                    [](const OffsetRange* range) { return range->end - range->begin; });
  auto partitions = std::ssize(by_size);
  for (OffsetRange* const range : by_size) {
    const int64_t size = std::min(range->end - range->begin, most / partitions--);
    range->begin = range->end - size;
    most -= size;
  }
  return PrintKafkaName(topic.name);
}

}  // namespace muster::data
