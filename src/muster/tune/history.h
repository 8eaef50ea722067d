// Trial: one point of the space that a study tries, with what was reported of it; and Goal, which
// says what a better value is. Samplers and schedulers are functions of these.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/tune/space.h"

namespace muster::tune {

// The value of the metric after `resource`: epochs or steps, whichever the trial counts in.
struct Report {
  int64_t resource = 0;
  double value = 0;      // not a number: worse than any number
  uint64_t records = 0;  // read by the trial so far
  int64_t step = 0;      // of the model; 0: not known
};

// Where a trial of a population (population.h) begins.
struct Origin {
  int64_t member = -1;     // of the population; -1: of none
  int64_t generation = 0;  // how many trials this member has ended before
  int64_t parent = -1;     // the trial from whose end it continues; -1: none, it begins anew
  int64_t step = 0;        // the model's, at the parent's end
  uint64_t records = 0;    // read by the parent and those from which it descends
};

enum class TrialState { kRunning, kComplete, kStopped, kFailed };
// "running", "complete", "stopped" (by the scheduler or the budget), "failed".
const char* StateName(TrialState state);

struct Trial {
  int64_t number = 0;
  Point point = {};
  Origin origin = {};
  TrialState state = TrialState::kRunning;
  std::vector<Report> reports = {};  // in the order of their resources
  std::string stop = {};             // why it is told to stop; "": it continues
  std::optional<double> value = {};  // once it has ended: its last value
  int64_t step = 0;                  // once it has ended: the model's step; 0: not known
  uint64_t records = 0;              // once it has ended: the records that it read
  double seconds = 0;                // once it has ended
  std::string error = {};            // of a failed trial
};

// The value as JSON has it: null if it is not finite.
inline Json NumberJson(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// Trials by their numbers, all from 0 on.
using History = std::vector<Trial>;

struct Goal {
  std::string metric;
  bool maximize = false;

  // Lower is better; not a number becomes infinity.
  double Cost(double value) const {
    if (std::isnan(value)) return HUGE_VAL;
    return maximize ? -value : value;
  }
};

// The trial with the best value among the complete ones, or, if none is complete, among the stopped
// ones; the first of several. Null if none has a value.
const Trial* FindBest(const History& history, const Goal& goal);

}  // namespace muster::tune
