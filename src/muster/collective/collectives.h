// Collectives: operations that all ranks of a Group do together. The order of every sum depends on
// the numbers of values and ranks only, never on timing or transport, and all ranks end with the
// same bytes.
//
// Up to kMostDirectRanks ranks send to each other directly and sum around a ring. More ranks sum by
// levels (rank_levels.h) and pass on what they gather, so that each one talks to few others, in few
// rounds.
//
// Sources: ring all-reduce as in Patarasuk, Yuan, "Bandwidth Optimal All-reduce Algorithms for
// Clusters of Workstations" (JPDC 2009): reduce-scatter, then all-gather, 2 (n-1) / n of the bytes
// each way. Dissemination barrier: Hensgen, Finkel, Manber, "Two Algorithms for Barrier
// Synchronization" (IJPP 1988). All-gather in log2 n rounds: Bruck et al., "Efficient Algorithms
// for All-to-All Communications in Multiport Message-Passing Systems" (TPDS 1997).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "muster/collective/group.h"

namespace muster::collective {

// values[i] = sum over ranks of values[i], in place. Every rank gives the same number of values.
// Few values are gathered and summed by every rank; of more, each rank sums a part, 256 KiB per
// rank at a time.
absl::Status AllReduce(Group& group, std::span<float> values);
// Whether so many values are few.
bool AreFew(size_t values, int ranks);
// How many values are in work at a time.
size_t RingTurnFloats(int ranks);

// Gives every rank the bytes of all ranks, by rank; sizes may differ. (*all)[rank()] has this
// rank's bytes; the other entries are replaced, and their memory is reused. `max_bytes` is the most
// that a rank can have: if a rank announces more, the group ends before memory is allocated.
absl::Status AllGather(Group& group, uint64_t max_bytes, std::vector<std::vector<std::byte>>* all);
// Like the AllGather above, for pieces of equal size: all[i * mine.size() ...] gets the piece of
// rank i.
absl::Status AllGather(Group& group, ConstBytes mine, MutableBytes all);

// Copies the `bytes` of rank `root` to the `bytes` of every other rank, which have the same size.
absl::Status Broadcast(Group& group, int root, MutableBytes bytes);
// Copies the `bytes` that every rank of `from` has to the `bytes` of the ranks of `to`, which have
// the same size. Pieces come from the ranks of `from` in turn, so that each of them sends its share
// once, to to[0]; each rank of `to` forwards the pieces to the next one as they arrive, so that the
// broadcast takes little longer than one transfer. All ranks of `from` and `to` must pass the same
// ones, at least one in `from` and none in both; other ranks do not take part.
absl::Status Broadcast(Group& group, std::span<const int> from, std::span<const int> to,
                       MutableBytes bytes);
inline constexpr size_t kBroadcastPiece = size_t{256} << 10;

// Returns when every rank has called it.
absl::Status Barrier(Group& group);

}  // namespace muster::collective
