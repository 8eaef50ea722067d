// Time as a parameter, so that a test can control it.
#pragma once

#include <cstdint>

namespace muster {

class Clock {
 public:
  virtual ~Clock() = default;
  // Seconds since the Unix epoch; may jump.
  virtual double WallSeconds() const = 0;
  // Nanoseconds that never go back; for durations and deadlines.
  virtual int64_t MonotonicNanos() const = 0;
};

// The machine's clocks. Thread-safe.
class SystemClock : public Clock {
 public:
  double WallSeconds() const override;
  int64_t MonotonicNanos() const override;
};

// Advances only when told. One owner thread.
class FakeClock : public Clock {
 public:
  explicit FakeClock(double wall_seconds = 1'700'000'000) : wall_seconds_(wall_seconds) {}
  void Advance(double seconds);
  double WallSeconds() const override { return wall_seconds_; }
  int64_t MonotonicNanos() const override { return nanos_; }

 private:
  double wall_seconds_;
  int64_t nanos_ = 0;
};

}  // namespace muster
