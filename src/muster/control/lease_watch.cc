#include "muster/control/lease_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace muster::control {
namespace {

constexpr double kLateLookSeconds = 4;  // a look that comes so late: this process did not run
constexpr double kMinLookSeconds = 0.01;

}  // namespace

LeaseWatch::LeaseWatch(LeaseWatchOptions options, const Clock* clock)
    : options_(std::move(options)),
      clock_(clock),
      looked_at_(now()),
      thread_([this](const std::stop_token& stop) { Watch(stop); }) {}

LeaseWatch::~LeaseWatch() = default;

// Silence counts only while both sides could have spoken. A process that was stopped together with
// the other, by Ctrl-Z or with all tasks of the machine, has lost nobody.
double LeaseWatch::Look() {
  if (over_) return 0;
  const double at = now();
  if (at - looked_at_ > kLateLookSeconds) forgiven_at_ = at;
  looked_at_ = at;
  const LeaseWatchOptions::Silence silence = options_.listen();
  const double seconds =
      options_.forgives ? std::min(silence.seconds, at - forgiven_at_) : silence.seconds;
  if (seconds <= silence.lease_seconds) return silence.lease_seconds - seconds;
  over_ = true;
  change_.notify_all();
  return 0;
}

bool LeaseWatch::over() {
  const std::lock_guard lock(mutex_);
  Look();
  return over_;
}

bool LeaseWatch::ends() {
  const std::lock_guard lock(mutex_);
  return end_ == End::kRuns || end_ == End::kDone;
}

void LeaseWatch::Forgive() {
  const std::lock_guard lock(mutex_);
  forgiven_at_ = now();
}

void LeaseWatch::Release() {
  std::unique_lock lock(mutex_);
  change_.wait(lock, [this] { return end_ != End::kRuns; });
  if (end_ == End::kNotCalled) end_ = End::kReleased;
  change_.notify_all();
}

void LeaseWatch::WaitForEnd() {
  std::unique_lock lock(mutex_);
  change_.wait(lock, [this] { return end_ == End::kDone || end_ == End::kReleased; });
}

void LeaseWatch::Watch(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested() && end_ == End::kNotCalled) {
    const double left = Look();
    if (over_) {
      end_ = End::kRuns;
      lock.unlock();
      options_.end();
      lock.lock();
      end_ = End::kDone;
      change_.notify_all();
      return;
    }
    const double pause = std::clamp(left, kMinLookSeconds, options_.look_seconds);
    change_.wait_for(lock, stop, std::chrono::duration<double>(pause),
                     [this] { return over_ || end_ != End::kNotCalled; });
  }
}

}  // namespace muster::control
