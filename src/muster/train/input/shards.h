// Shards: how data is divided in a training whose number of replicas may change. The data is cut
// into a fixed number of shards. Each shard has its own position and is read by one replica. When
// the number of replicas changes, the shards are divided anew, and each shard continues after its
// last batch that counted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/reader.h"

namespace muster::train {

// The number of shards for `fewest` to `most` replicas: one that gives equal shares for each number
// of replicas or, if that would be too many shards, shares that differ little.
int GetShardCount(int fewest, int most);

// The shards of one replica. They depend on the arguments alone, so that the same rank among the
// same number of replicas always has the same shards.
std::vector<int> GetShards(int shards, int rank, int size);

// A note in which a replica reports to the others which shard its batch comes from, and the
// position of the shard after this batch.
std::string MakeShardNote(int shard, const data::Position& position);
// Stores the notes of the replicas ("": no batch) in *positions, by shard. Returns the first
// replica whose text is not such a note; *positions is then unchanged.
std::optional<size_t> MergeShardNotes(const std::vector<std::string>& notes, int shards,
                                      std::vector<std::string>* positions);

}  // namespace muster::train
