// Virtual time for processes that may be dead or asleep when an event is due, and for messages on a
// line (one direction of a connection), which arrive in the order in which they were sent. For
// tests of this layer only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "muster/base/simulated_time.h"

namespace muster::membership {

struct Sleeper {
  bool alive = true;
  double asleep_until = 0;
};

class SimulatedTime : public muster::SimulatedTime {
 public:
  using muster::SimulatedTime::SimulatedTime;

  // Runs at that time, or when `sleeper` wakes up after it; never if `sleeper` is dead. Null: runs
  // at that time.
  void At(double at, std::shared_ptr<Sleeper> sleeper, std::function<void()> run) {
    if (sleeper == nullptr) return muster::SimulatedTime::At(at, std::move(run));
    muster::SimulatedTime::At(at, [this, sleeper, run = std::move(run)] {
      if (!sleeper->alive) return;
      if (now() < sleeper->asleep_until) return At(sleeper->asleep_until, sleeper, run);
      run();
    });
  }
  void After(double delay, std::shared_ptr<Sleeper> sleeper, std::function<void()> run) {
    At(now() + delay, std::move(sleeper), std::move(run));
  }
  // The time at which a message that is sent now arrives.
  double Arrival(uint64_t line) {
    return arrivals_[line] = std::max(arrivals_[line], now() + Delay());
  }

 private:
  std::map<uint64_t, double> arrivals_;  // the last arrival, by line
};

}  // namespace muster::membership
