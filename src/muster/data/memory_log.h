// MemoryLog: for tests, a topic of partitions in memory, as a SourceSet of data that is not in
// files. As in a real log, offsets have gaps (marks of transactions, aborted and compacted
// records), and the number of records that a chunk announces is its number of offsets. Records are
// tf.Examples.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/data/chunk_table.h"
#include "muster/data/source_set.h"
#include "muster/formats/example.h"
#include "muster/formats/tfrecord.h"

namespace muster::data {

// Patterns are log://TOPIC, for all partitions by name, and log://TOPIC/PARTITION. The log must be
// filled before it is read; then any thread may read it, and sources may outlive it.
class MemoryLog : public SourceSet {
 public:
  static constexpr char kScheme[] = "log";

  // Appends a record to the partition "TOPIC/NAME", which is created if it does not exist.
  void Append(const std::string& partition, std::string record) {
    Partition& log = partitions_[partition];
    log.records.emplace(log.end++, std::move(record));
  }
  // Appends `count` offsets without a record.
  void Skip(const std::string& partition, uint64_t count) { partitions_[partition].end += count; }
  void Remove(const std::string& partition) { partitions_.erase(partition); }
  // Gives the log another identity, as if it had been removed and created again.
  void set_identity(std::string identity) { identity_ = std::move(identity); }

  absl::StatusOr<std::vector<SourceItem>> List(
      const std::vector<std::string>& patterns) const override {
    std::vector<SourceItem> items;
    for (const std::string& pattern : patterns) {
      const std::string wanted = pattern.substr(std::string(kScheme).size() + 3);
      const size_t before = items.size();
      for (const auto& [name, log] : partitions_) {
        if (name != wanted && !name.starts_with(wanted + "/")) continue;
        items.push_back({.kind = SourceItem::Kind::kPartition,
                         .name = name,
                         .common_name = name,
                         .end = log.end,
                         .identity = identity_});
      }
      if (items.size() == before) {
        return absl::NotFoundError(StrCat("no partition is named '", pattern, "'"));
      }
    }
    return items;
  }
  absl::StatusOr<bool> CanBeCut(const SourceItem&, const formats::DataFormat&) const override {
    return true;
  }
  absl::StatusOr<uint64_t> CountRecords(const SourceItem& item,
                                        const formats::DataFormat&) const override {
    return item.size();
  }
  absl::StatusOr<std::vector<std::unique_ptr<RecordSource>>> OpenShards(
      const SourceSpec& spec, std::span<const Shard> shards, uint64_t) const override {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<SourceItem> items, List(spec.patterns));
    uint64_t announced = 0;
    for (const SourceItem& item : items) announced += item.size();
    if (announced == 0 && !spec.may_be_empty) {
      return absl::InvalidArgumentError(StrCat("no records in ", items[0].name));
    }
    std::vector<std::unique_ptr<RecordSource>> sources;
    for (const Shard& shard : shards) {
      std::vector<IndexedItem> taken;
      std::vector<Partition> partitions;
      for (size_t i = 0; i < items.size(); ++i) {
        if (!TakesItem(shard, i)) continue;
        partitions.push_back(partitions_.at(items[i].name));
        taken.push_back({.name = items[i].name,
                         .identity = StrCat(items[i].common_name, "@", items[i].identity),
                         .size = items[i].size(),
                         .index = Index(partitions.back())});
      }
      sources.push_back(std::make_unique<Source>(MakeChunkTable(taken, shard, spec.first_number),
                                                 std::move(partitions)));
    }
    return sources;
  }

 private:
  struct Partition {
    std::map<uint64_t, std::string> records;  // by offset
    uint64_t end = 0;
  };

  // Cuts the log where a TFRecord file with the same records would be cut.
  static RecordIndex Index(const Partition& log) {
    RecordIndex index;
    index.file_size = index.end = log.end;
    if (log.end == 0) return index;
    index.chunks.push_back({.begin = 0, .records = 0});
    uint64_t bytes = 0;
    for (const auto& [offset, record] : log.records) {
      if (bytes >= kChunkBytes) {
        index.chunks.push_back({.begin = offset, .records = 0});
        bytes = 0;
      }
      bytes += record.size() + formats::kTfRecordOverhead;
    }
    for (size_t i = 0; i < index.chunks.size(); ++i) {
      const uint64_t end = i + 1 < index.chunks.size() ? index.chunks[i + 1].begin : log.end;
      index.chunks[i].records = end - index.chunks[i].begin;
    }
    return index;
  }

  class Source : public RecordSource {
   public:
    Source(ChunkTable table, std::vector<Partition> partitions)
        : table_(std::move(table)), partitions_(std::move(partitions)) {}
    const std::vector<std::string>& files() const override { return table_.names; }
    const std::vector<ChunkInfo>& chunks() const override { return table_.chunks; }
    absl::StatusOr<std::shared_ptr<const Chunk>> Read(size_t number) const override {
      const ChunkInfo& info = table_.chunks[number];
      const auto& records = partitions_[static_cast<size_t>(info.file)].records;
      const auto first = records.lower_bound(info.begin + info.first_record);
      const auto last = records.lower_bound(info.begin + info.first_record + info.records);
      auto chunk = std::make_shared<Chunk>();
      chunk->file = table_.names[static_cast<size_t>(info.file)];
      chunk->place = RecordPlace::kOffset;
      chunk->first_number = info.first_number;
      size_t size = 0;
      for (auto at = first; at != last; ++at) size += at->second.size();
      chunk->bytes.reserve(size);
      for (auto at = first; at != last; ++at) {
        const char* const data = chunk->bytes.data() + chunk->bytes.size();
        chunk->bytes += at->second;
        chunk->records.emplace_back(data, at->second.size());
        chunk->offsets.push_back(at->first);
      }
      return chunk;
    }
    absl::StatusOr<std::unique_ptr<ChunkStream>> Stream(size_t chunk) const override {
      return NewOnePieceStream(*this, chunk);
    }
    absl::StatusOr<std::unique_ptr<formats::RowDecoder>> NewDecoder(
        const formats::Schema& schema) const override {
      return formats::NewExampleDecoder(schema);
    }
    absl::Status CountBad(size_t, const Chunk&) const override { return absl::OkStatus(); }
    uint64_t bad_records() const override { return 0; }
    bool has_offsets() const override { return true; }
    uint64_t fingerprint() const override { return table_.fingerprint; }

   private:
    const ChunkTable table_;
    const std::vector<Partition> partitions_;
  };

  std::map<std::string, Partition> partitions_;
  std::string identity_ = "first";
};

}  // namespace muster::data
