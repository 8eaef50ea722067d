// GangWait: when a job gives back processes that it cannot use. On a platform with little room two
// jobs can each hold a part of what they need and wait for the rest, which the other one holds. So
// a job that has waited for long and got nothing new gives all back, and asks again after a pause.
// How long it waits and pauses is random: of two such jobs one gives back first, and the other one
// gets what is free then.
//
// It is pure: the time is given. One owner thread.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <set>

#include "muster/control/incarnation.h"

namespace muster::control {

// What the job's tasks have and lack.
struct GangLook {
  std::set<IncarnationId> missing = {};  // those to which the platform has given no process yet
  // Whether another task has a process and cannot begin, or continue, without one of these.
  bool is_held = false;
  // Since a running task that needs one of these last gave a sign of life.
  double still_seconds = std::numeric_limits<double>::infinity();
};

class GangWait {
 public:
  // A wait is too long after `seconds` to half as long again; 0: never. `seed`: other jobs have
  // another one.
  GangWait(double seconds, uint64_t seed) : seconds_(seconds), random_(seed) {}

  // Returns how long the job has waited, in seconds, once that is too long; the next wait begins
  // then. `now`: monotonic seconds.
  std::optional<double> Look(const GangLook& look, double now);
  // Seconds after which Look() may return something; infinity: not before something changes.
  double seconds_left() const { return left_; }
  // How long to hold nothing.
  double DrawPause();
  // The time that has passed counts for nothing.
  void Reset() { since_.reset(); }

 private:
  double Draw(double low, double high);

  const double seconds_;
  std::minstd_rand random_;
  std::set<IncarnationId> missing_;
  std::optional<double> since_;  // none: nothing is waited for
  double patience_ = 0;
  double left_ = std::numeric_limits<double>::infinity();
};

}  // namespace muster::control
