// ChunkTable: the chunks of a set of files or partitions that belong to one shard, and what
// identifies them. Every RecordSource over an index of chunks is made from one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/record_index.h"
#include "muster/data/source.h"

namespace muster::data {

// A file or a partition, and where it can be cut.
struct IndexedItem {
  std::string name = {};  // for messages and RecordSource::files()
  // Identifies the item on all machines, together with its size: the name of a file without its
  // folder; the name of a partition with the identity of its log.
  std::string identity = {};
  uint64_t size = 0;
  // `chunks` and `end` count in the item's positions: bytes of an uncompressed file, offsets of a
  // partition. A chunk may have fewer records than it announces.
  RecordIndex index = {};
};

struct ChunkTable {
  std::vector<std::string> names;  // of all items
  std::vector<ChunkInfo> chunks;
  uint64_t fingerprint = 0;
};

// INVALID_ARGUMENT for an impossible shard, such as index 3 of 3.
absl::Status CheckShard(const Shard& shard);

// Whether item `item` may hold records of the shard.
bool TakesItem(const Shard& shard, size_t item);

// Makes the chunks of the shard. `items` are those that the shard takes; the first record of the
// first item has the number `first_number`.
ChunkTable MakeChunkTable(const std::vector<IndexedItem>& items, const Shard& shard,
                          uint64_t first_number);

}  // namespace muster::data
