// Collectives: what all ranks of a Group do together. The order of every sum depends on the number
// of values and of ranks only, never on timing or transport, and all ranks end with the same bytes.
//
// Sources: ring all-reduce as in Patarasuk, Yuan, "Bandwidth Optimal All-reduce Algorithms for
// Clusters of Workstations" (JPDC 2009): reduce-scatter, then all-gather, 2 (n-1) / n of the bytes
// each way. Barrier by dissemination: Hensgen, Finkel, Manber, "Two Algorithms for Barrier
// Synchronization" (IJPP 1988).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "muster/collective/group.h"

namespace muster::collective {

// values[i] = sum over ranks of values[i], in place. Every rank gives the same number of values.
// Few values go to every rank at once; more around the ring, 256 KiB a rank at a time.
absl::Status AllReduce(Group& group, std::span<float> values);
// How many values go around the ring at a time.
size_t RingTurnFloats(int ranks);

// What every rank gave, by rank; sizes may differ. (*all)[rank()] is what this one gives; the
// others are replaced, whose memory is used again. A rank that announces more than `max_bytes`,
// which is what one can have, ends the group before memory is taken.
absl::Status AllGather(Group& group, uint64_t max_bytes, std::vector<std::vector<std::byte>>* all);
// The same for pieces of one size: all[i * mine.size() ...] is what rank i gave.
absl::Status AllGather(Group& group, ConstBytes mine, MutableBytes all);

// `bytes` of `root` to every rank's, which have the same size.
absl::Status Broadcast(Group& group, int root, MutableBytes bytes);

// Returns when every rank has called it.
absl::Status Barrier(Group& group);

}  // namespace muster::collective
