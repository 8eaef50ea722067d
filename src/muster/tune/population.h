// Population: population based training. Jaderberg et al., "Population Based Training of Neural
// Networks" (arXiv 1711.09846, 2017), with truncation selection.
//
// The members of a population train side by side, in intervals. An interval of a member is a trial
// of its own, which continues from the end of the trial before it, its parent. A member that is
// among the worst of its generation does not continue from its own trial but from that of one of
// the best, with values near to those of that trial, or drawn anew.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "muster/tune/history.h"
#include "muster/tune/scheduler.h"

namespace muster::tune {

// What the next trial of a population is.
struct Successor {
  int64_t member = 0;
  int64_t parent = -1;  // the trial from whose end it continues; -1: it begins anew
  Point point = {};
};

// A pure function of the seed and the history: the same history gives the same successor, in any
// process.
class Population {
 public:
  // `space` must outlive the population.
  Population(const SchedulerSpec& spec, const Space& space, const Goal& goal, uint64_t seed)
      : spec_(spec), space_(space), goal_(goal), seed_(seed) {}

  // The next trial: of a new member until there are enough of them, then of the member that has
  // trained the least of those that do not run. nullopt: all members run.
  //
  // A member is compared with the others as they were after as many trials as its own: with one
  // trial at a time all are compared at the same generation. Others that are not so far count with
  // their newest trial.
  std::optional<Successor> Next(const History& history) const;

 private:
  Point Explore(const Point& point, int64_t trial) const;

  const SchedulerSpec spec_;
  const Space& space_;
  const Goal goal_;
  const uint64_t seed_;
};

// The trials from which `trial` descends, the oldest first, and itself at the end.
std::vector<const Trial*> FindLineage(const History& history, const Trial& trial);

}  // namespace muster::tune
