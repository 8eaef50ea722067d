// Scheduler: says at each evaluation whether a trial continues, as a pure function of the history.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "muster/base/status.h"
#include "muster/tune/history.h"

namespace muster::tune {

struct SchedulerSpec {
  enum class Kind { kNone, kMedian, kAsha, kHyperband, kPbt };
  Kind kind = Kind::kNone;
  int64_t min_resource = 1;  // no trial is stopped before
  int64_t max_resource = 0;  // kHyperband: what a trial that is never stopped uses
  int factor = 3;            // kAsha, kHyperband: one of so many trials passes a rung
  int startup_trials = 5;    // kMedian: complete trials before the first is stopped
  // kPbt (population.h):
  int population = 10;
  int64_t interval = 0;     // records that a trial reads; 0: the trial's command knows
  double truncation = 0.2;  // so many of the worst continue from as many of the best
  double resample = 0.25;  // the chance that a value is then drawn anew instead of changed a little
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // Why the trial should stop after its newest report; "" if it should continue. `trial` is one of
  // `history`.
  virtual std::string WhyStop(const History& history, const Trial& trial) const = 0;
};

// Median: a trial stops if its best value so far is worse than the median of the values that other
// trials had at that resource. Golovin et al., "Google Vizier" (KDD 2017).
// ASHA: Li et al., "A System for Massively Parallel Hyperparameter Tuning" (MLSys 2020); a trial
// stops at min_resource * factor^k unless it is among the best 1/factor of those that came there.
// Hyperband: Li et al. (JMLR 2018): brackets of ASHA, each of which begins a factor later.
// Population based training stops no trial.
std::unique_ptr<Scheduler> NewScheduler(const SchedulerSpec& spec, const Goal& goal);

}  // namespace muster::tune
