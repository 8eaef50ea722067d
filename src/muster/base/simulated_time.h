// Virtual time for simulations: events in their order, and chance by a seed. For tests only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <utility>

namespace muster {

// The same seed and calls give the same history. One owner thread.
class SimulatedTime {
 public:
  explicit SimulatedTime(uint64_t seed) : random_(seed) {}

  double now() const { return now_; }
  bool empty() const { return queue_.empty(); }
  uint64_t Below(uint64_t n) { return random_() % n; }
  double Uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
  }
  // What a message may take: mostly little.
  double Delay() { return Below(10) == 0 ? Uniform(0.1, 2) : Uniform(0.001, 0.05); }

  // Events of one time run in the order of these calls.
  void At(double at, std::function<void()> run) { queue_.push({at, ++order_, std::move(run)}); }
  void After(double delay, std::function<void()> run) { At(now_ + delay, std::move(run)); }
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
};

}  // namespace muster
