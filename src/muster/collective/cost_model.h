// What collectives send, as docs/scale.md says, for the tests that count it. Without spare ranks
// (rank_levels.h).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "muster/collective/rank_levels.h"
#include "muster/net/transport/counting_stream.h"

namespace muster::collective {

struct CostModel {
  int64_t ranks = 2;

  // Whether ranks pass on what they gather, and sum by levels.
  bool is_large() const { return ranks > kMostDirectRanks; }
  // Messages of an all-gather: to each other rank, or to log2 n of them.
  int64_t rounds() const {
    return is_large() ? std::bit_width(static_cast<uint64_t>(ranks - 1)) : ranks - 1;
  }
  // Bytes of an all-gather of pieces of this size.
  int64_t gathered(int64_t size) const {
    using net::transport::FramedBytes;
    if (!is_large()) return (ranks - 1) * FramedBytes(static_cast<size_t>(size));
    int64_t bytes = 0;
    for (int64_t have = 1; have < ranks; have *= 2) {
      bytes += FramedBytes(static_cast<size_t>(size * std::min(have, ranks - have)));
    }
    return bytes;
  }
  // Messages of the half of an all-reduce in which the parts are summed.
  int64_t halvings() const {
    if (!is_large()) return ranks - 1;
    int64_t messages = 0;
    const RankLevels levels(static_cast<int>(ranks));
    for (const RankLevels::Level& level : levels.levels()) messages += level.radix - 1;
    return messages;
  }
};

}  // namespace muster::collective
