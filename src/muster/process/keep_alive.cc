#include "muster/process/keep_alive.h"

#include <csignal>
#include <deque>
#include <limits>
#include <optional>
#include <utility>

#include "muster/process/deadline.h"

namespace muster::process {
namespace {

constexpr double kIndefinitely = std::numeric_limits<double>::infinity();

class Keeper {
 public:
  Keeper(std::unique_ptr<Child> child, const Starter& start, const Clock& clock,
         const KeepAliveOptions& options)
      : child_(std::move(child)), start_(start), clock_(clock), options_(options) {}

  absl::Status Run();

 private:
  double now() const { return static_cast<double>(clock_.MonotonicNanos()) * 1e-9; }
  bool StopWithin(double seconds) const;
  absl::Status StopChild();
  std::optional<absl::Status> ConsumeEnd();
  std::optional<double> PauseBeforeRestart();

  std::unique_ptr<Child> child_;  // null: its start failed, for the reason in death_
  const Starter& start_;
  const Clock& clock_;
  const KeepAliveOptions& options_;
  std::deque<double> restarts_;  // within the window
  std::string death_;
};

// Waits for so long, or until the process is told to end.
bool Keeper::StopWithin(double seconds) const {
  return PollReadable(&options_.stop_fd, 1, Deadline::After(seconds));
}

absl::Status Keeper::StopChild() {
  if (child_ == nullptr) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(child_->Signal(SIGTERM));
  return child_->Wait(kIndefinitely).status();
}

// Nothing is returned if the process died.
std::optional<absl::Status> Keeper::ConsumeEnd() {
  const auto exit = child_->Wait(0);
  child_.reset();
  if (!exit.ok()) return exit.status();
  if (exit->ok()) return absl::OkStatus();
  death_ = DescribeExit(*exit);
  if (exit->signal == SIGTERM || exit->signal == SIGINT) return absl::AbortedError(death_);
  return std::nullopt;
}

// Nothing is returned if there were too many restarts.
std::optional<double> Keeper::PauseBeforeRestart() {
  while (!restarts_.empty() && restarts_.front() <= now() - options_.window_seconds) {
    restarts_.pop_front();
  }
  const size_t before = restarts_.size();
  if (std::cmp_greater_equal(before, options_.max_restarts)) return std::nullopt;
  restarts_.push_back(now());
  double pause = before == 0 ? 0 : options_.pause_seconds;
  for (size_t i = 1; i < before; ++i) pause *= 2;
  return pause;
}

absl::Status Keeper::Run() {
  while (true) {
    if (child_ != nullptr) {
      const int fds[] = {child_->pidfd(), options_.stop_fd};
      PollReadable(fds, 2, Deadline::After(kIndefinitely));
      if (StopWithin(0)) return StopChild();
      if (auto end = ConsumeEnd()) return *end;
    }
    const auto pause = PauseBeforeRestart();
    if (!pause) {
      return absl::AbortedError(StrCat(death_, ", and it had been started again ",
                                       options_.max_restarts, " times in ", options_.window_seconds,
                                       " s: it is given up"));
    }
    if (options_.say) options_.say(StrCat(death_, ": started again in ", *pause, " s"));
    if (StopWithin(*pause)) return absl::OkStatus();
    auto started = start_();
    if (started.ok()) {
      child_ = *std::move(started);
    } else {
      death_ = ToStd(started.status().message());
    }
  }
}

}  // namespace

absl::Status KeepAlive(std::unique_ptr<Child> child, const Starter& start, const Clock& clock,
                       const KeepAliveOptions& options) {
  return Keeper(std::move(child), start, clock, options).Run();
}

}  // namespace muster::process
