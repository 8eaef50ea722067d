#include "muster/collective/rank_levels.h"

#include <algorithm>
#include <set>

namespace muster::collective {
namespace {

constexpr int kRadices[] = {2, 3, 5};

// What is left of `seats` without the factors 2, 3 and 5.
int GetRest(int seats) {
  for (const int radix : kRadices) {
    while (seats % radix == 0) seats /= radix;
  }
  return seats;
}

}  // namespace

RankLevels::RankLevels(int ranks) : seats_(ranks) {
  while (GetRest(seats_) != 1) --seats_;
  spare_ = ranks - seats_;
  int stride = 1;
  for (const int radix : kRadices) {
    for (; seats_ / stride % radix == 0 && stride < seats_; stride *= radix) {
      levels_.push_back({.stride = stride, .radix = radix});
    }
  }
}

std::vector<int> GetNeighbours(int ranks, int rank) {
  std::set<int> found;
  for (int other = 0; other < ranks && ranks <= kMostDirectRanks; ++other) found.insert(other);
  for (int distance = 1; distance < ranks; distance *= 2) {
    found.insert((rank + distance) % ranks);
    found.insert((rank + ranks - distance) % ranks);
  }
  const RankLevels levels(ranks);
  if (levels.IsSpare(rank)) {
    found.insert(rank + 1);
  } else {
    if (levels.GetSpare(rank) >= 0) found.insert(levels.GetSpare(rank));
    const int seat = levels.GetSeat(rank);
    for (const RankLevels::Level& level : levels.levels()) {
      for (int digit = 0; digit < level.radix; ++digit) {
        found.insert(levels.GetRank(level.WithDigit(seat, digit)));
      }
    }
  }
  found.erase(rank);
  return {found.begin(), found.end()};
}

}  // namespace muster::collective
