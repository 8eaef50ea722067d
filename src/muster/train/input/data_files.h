// Describes the files (or partitions) of a training's data, which must be the same in all tasks,
// and how evenly they are divided among replicas.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/data/source_set.h"

namespace muster::train {

// "4 files of 1234 bytes, names and sizes 0a1b2c3d", or "4 partitions of 1234 offsets, names and
// ranges 0a1b2c3d": the same text for the same names and sizes or ranges, in the same order.
std::string DescribeDataFiles(const std::vector<data::SourceItem>& items);

// A warning for people if whole files are divided into `shards` (0: one shard per replica) among
// `replicas` and one replica has at least 1.5 times the bytes of another: the warning names both
// and says what to do. Otherwise "".
std::string DescribeUnevenShares(const std::vector<data::SourceItem>& items, int replicas,
                                 int shards);

}  // namespace muster::train
