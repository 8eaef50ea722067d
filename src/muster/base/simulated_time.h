// Virtual time for simulations: events in their order, and chance by a seed. For tests only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <utility>

namespace muster {

// A simulated process, which may be dead or asleep when an event is due.
struct Sleeper {
  bool alive = true;
  double asleep_until = 0;
};

// The same seed and calls give the same history. One owner thread.
class SimulatedTime {
 public:
  explicit SimulatedTime(uint64_t seed) : random_(seed) {}

  uint64_t Below(uint64_t n) { return random_() % n; }
  double Uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
  }
  int Int(int low, int high) { return std::uniform_int_distribution<>(low, high)(random_); }
  bool Chance(double p) { return Uniform(0, 1) < p; }
  // What a message may take: mostly little.
  double Delay() { return Below(10) == 0 ? Uniform(0.1, 2) : Uniform(0.001, 0.05); }
  std::mt19937_64& random() { return random_; }

  double now() const { return now_; }
  bool empty() const { return queue_.empty(); }
  double next() const { return queue_.top().at; }  // of the next event; not empty
  // Events of one time run in the order of these calls.
  void At(double at, std::function<void()> run) { queue_.push({at, ++order_, std::move(run)}); }
  void After(double delay, std::function<void()> run) { At(now_ + delay, std::move(run)); }
  // Runs at that time, or when `sleeper` wakes up after it; never if `sleeper` is dead. Null: runs
  // at that time.
  void At(double at, std::shared_ptr<Sleeper> sleeper, std::function<void()> run) {
    if (sleeper == nullptr) return At(at, std::move(run));
    At(at, [this, sleeper, run = std::move(run)] {
      if (!sleeper->alive) return;
      if (now() < sleeper->asleep_until) return At(sleeper->asleep_until, sleeper, run);
      run();
    });
  }
  void After(double delay, std::shared_ptr<Sleeper> sleeper, std::function<void()> run) {
    At(now_ + delay, std::move(sleeper), std::move(run));
  }
  // The time at which a message that is sent now arrives: on one line they arrive in the order in
  // which they are sent.
  double Arrival(uint64_t line) {
    return arrivals_[line] = std::max(arrivals_[line], now_ + Delay());
  }

  // For a simulation that has no events: time goes to `at`.
  void Advance(double at) { now_ = std::max(now_, at); }
  // Time goes to the next event, which runs.
  void RunNext() {
    const Event event = queue_.top();
    queue_.pop();
    now_ = std::max(now_, event.at);
    event.run();
  }

 private:
  struct Event {
    double at = 0;
    uint64_t order = 0;
    std::function<void()> run = {};
    bool operator<(const Event& other) const {
      return std::pair(at, order) > std::pair(other.at, other.order);
    }
  };

  std::mt19937_64 random_;
  double now_ = 0;
  uint64_t order_ = 0;
  std::priority_queue<Event> queue_;
  std::map<uint64_t, double> arrivals_;  // the last arrival, by line
};

}  // namespace muster
