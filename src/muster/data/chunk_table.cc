#include "muster/data/chunk_table.h"

#include <algorithm>

#include "muster/base/fnv.h"

namespace muster::data {
namespace {

// Appends the chunks that hold `take` records of an item after its first `skip` records. The first
// of these chunks has the record number `number`.
void AddChunks(int item, const RecordIndex& index, uint64_t skip, uint64_t take, uint64_t number,
               std::vector<ChunkInfo>* chunks) {
  uint64_t in_item = 0;  // records of the item before the chunk
  for (size_t i = 0; i < index.chunks.size() && take > 0; in_item += index.chunks[i++].records) {
    const IndexedChunk& chunk = index.chunks[i];
    if (skip >= chunk.records) {
      skip -= chunk.records;
      continue;
    }
    ChunkInfo info;
    info.file = item;
    info.begin = chunk.begin;
    info.end = i + 1 < index.chunks.size() ? index.chunks[i + 1].begin : index.end;
    info.first_record = skip;
    info.records = std::min(take, chunk.records - skip);
    info.first_number = number;
    info.first_in_item = in_item + skip;
    number += info.records;
    info.line = chunk.line;
    info.compressed = index.compression != formats::Compression::kNone;
    take -= info.records;
    skip = 0;
    chunks->push_back(info);
  }
}

uint64_t Fingerprint(const std::vector<IndexedItem>& items, const std::vector<ChunkInfo>& chunks) {
  uint64_t hash = kFnvBasis;
  for (const IndexedItem& item : items) hash = Fnv1a(item.size, Fnv1a(item.identity, hash));
  for (const ChunkInfo& chunk : chunks) {
    hash = Fnv1a(static_cast<uint64_t>(chunk.file), hash);
    for (const uint64_t number : {chunk.begin, chunk.first_record, chunk.records}) {
      hash = Fnv1a(number, hash);
    }
  }
  return hash;
}

}  // namespace

absl::Status CheckShard(const Shard& shard) {
  if (shard.multiple < 1) {
    return absl::InvalidArgumentError(
        StrCat("the multiple of shards, ", shard.multiple, ", must be at least 1"));
  }
  if (shard.count >= 1 && shard.index >= 0 && shard.index < shard.count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("shard ", shard.index, " of ", shard.count, ": the first of N shards is 0 of N"));
}

bool TakesItem(const Shard& shard, size_t item) {
  return shard.by == ShardBy::kRecord ||
         item % static_cast<size_t>(shard.count) == static_cast<size_t>(shard.index);
}

ChunkTable MakeChunkTable(const std::vector<IndexedItem>& items, const Shard& shard,
                          uint64_t first_number) {
  uint64_t total = 0;
  for (const IndexedItem& item : items) total += item.index.records();
  const bool by_record = shard.by == ShardBy::kRecord;
  const auto multiple = static_cast<uint64_t>(shard.multiple);
  const uint64_t multiples = total / multiple + (total % multiple == 0 ? 0 : 1);
  const auto share = [&](int i) {
    const auto first = static_cast<unsigned __int128>(multiples) * i / shard.count;
    return static_cast<uint64_t>(std::min<unsigned __int128>(first * multiple, total));
  };
  const uint64_t begin = by_record ? share(shard.index) : 0;
  const uint64_t end = by_record ? share(shard.index + 1) : total;
  ChunkTable table;
  uint64_t first = 0;  // the number of the item's first record in all the data
  for (const IndexedItem& item : items) {
    const uint64_t last = first + item.index.records();
    const uint64_t from = std::clamp(begin, first, last), to = std::clamp(end, first, last);
    AddChunks(static_cast<int>(table.names.size()), item.index, from - first, to - from,
              first_number + from, &table.chunks);
    table.names.push_back(item.name);
    first = last;
  }
  table.fingerprint = Fingerprint(items, table.chunks);
  return table;
}

}  // namespace muster::data
