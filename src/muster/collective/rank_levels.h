// RankLevels: how the ranks of a group exchange parts of something with few others, in few rounds.
//
// The ranks have a seat each, whose number is written with one digit for each level, in the radices
// of the levels (2, 3 and 5). In a level the ranks whose seats differ in that digit alone exchange
// parts. A number of ranks that no such radices give has spare ranks, which leave theirs to the
// next rank and get the result from it. The first levels are between ranks with near numbers: those
// of one machine, if its ranks are numbered one after the other.
//
// It depends on the number of ranks only, and so do sums that are formed in this order.
//
// Sources: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
// MPICH" (IJHPCA 2005), recursive halving and doubling, and its way to have a power of 2.
#pragma once

#include <vector>

namespace muster::collective {

class RankLevels {
 public:
  struct Level {
    int stride = 1, radix = 2;
    int GetDigit(int seat) const { return seat / stride % radix; }
    // The seat that differs from `seat` by that digit alone.
    int WithDigit(int seat, int digit) const { return seat + (digit - GetDigit(seat)) * stride; }
  };

  explicit RankLevels(int ranks);

  int seats() const { return seats_; }
  const std::vector<Level>& levels() const { return levels_; }
  bool IsSpare(int rank) const { return rank < 2 * spare_ && rank % 2 == 0; }
  // The spare rank that leaves its part to this one; -1: none.
  int GetSpare(int rank) const { return rank < 2 * spare_ && rank % 2 == 1 ? rank - 1 : -1; }
  // Of a rank that is not spare.
  int GetSeat(int rank) const { return rank < 2 * spare_ ? rank / 2 : rank - spare_; }
  int GetRank(int seat) const { return seat < spare_ ? 2 * seat + 1 : seat + spare_; }

 private:
  int seats_ = 1, spare_ = 0;
  std::vector<Level> levels_;
};

// Up to this number of ranks each one exchanges with all others: collectives that go by levels and
// relays have no fewer rounds for them.
inline constexpr int kMostDirectRanks = 8;

// The ranks with which `rank` exchanges in the collectives of a group of `ranks`: all, or in a
// large group those of its levels and those 1, 2, 4, ... after and before it. In order, without
// `rank` itself. A broadcast along a chain may need others.
std::vector<int> GetNeighbours(int ranks, int rank);

}  // namespace muster::collective
