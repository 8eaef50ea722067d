// Virtual time: events in their order, for somebody who may be dead or asleep then. Messages of a
// line arrive in the order in which they were sent. For tests of this layer only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <utility>

namespace muster::membership {

struct Sleeper {
  bool alive = true;
  double asleep_until = 0;
};

class SimulatedTime {
 public:
  explicit SimulatedTime(uint64_t seed) : random_(seed) {}

  double now() const { return now_; }
  bool empty() const { return queue_.empty(); }
  uint64_t Below(uint64_t n) { return random_() % n; }
  double Uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
  }
  double Delay() { return Below(10) == 0 ? Uniform(0.1, 2) : Uniform(0.001, 0.05); }

  // Runs when `sleeper` is awake; never when it is dead. Null: whenever.
  void At(double at, std::shared_ptr<Sleeper> sleeper, std::function<void()> run) {
    queue_.push({at, ++order_, std::move(sleeper), std::move(run)});
  }
  void After(double delay, std::shared_ptr<Sleeper> sleeper, std::function<void()> run) {
    At(now_ + delay, std::move(sleeper), std::move(run));
  }
  // When a message that is sent now arrives.
  double Arrival(uint64_t line) {
    return arrivals_[line] = std::max(arrivals_[line], now_ + Delay());
  }
  void RunNext() {
    Event event = queue_.top();
    queue_.pop();
    now_ = std::max(now_, event.at);
    if (event.sleeper != nullptr) {
      if (!event.sleeper->alive) return;
      const double until = event.sleeper->asleep_until;
      if (now_ < until) return At(until, std::move(event.sleeper), std::move(event.run));
    }
    event.run();
  }

 private:
  struct Event {
    double at = 0;
    uint64_t order = 0;
    std::shared_ptr<Sleeper> sleeper = {};
    std::function<void()> run = {};
    bool operator<(const Event& other) const {
      return std::pair(at, order) > std::pair(other.at, other.order);
    }
  };

  std::mt19937_64 random_;
  double now_ = 0;
  uint64_t order_ = 0;
  std::priority_queue<Event> queue_;
  std::map<uint64_t, double> arrivals_;  // the last, by line
};

}  // namespace muster::membership
