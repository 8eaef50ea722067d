#include "muster/cli/common/interrupt.h"

#include <csignal>
#include <cstdint>
#include <ctime>

namespace muster::cli {
namespace {

constexpr int64_t kSameRequestMillis = 500;

std::atomic<bool> stop_requested{false};
std::atomic<int64_t> first_millis{0};
std::atomic<int> first_signal{0};
std::atomic<bool> by_sigterm{false};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
              std::atomic<int64_t>::is_always_lock_free);

// By a call that a signal handler may make.
int64_t MonotonicMillis() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

void RequestStop(int signal) {
  int none = 0;
  const int64_t now = MonotonicMillis();
  // These are set first, so that code that sees the request knows its kind.
  if (first_signal.compare_exchange_strong(none, signal)) {
    by_sigterm = signal != SIGINT;
    first_millis = now;
  }
  if (stop_requested.exchange(true) && signal != SIGHUP &&
      now - first_millis >= kSameRequestMillis) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

InterruptScope::InterruptScope() {
  stop_requested = by_sigterm = false;
  first_signal = 0;
  std::signal(SIGINT, RequestStop);
  std::signal(SIGTERM, RequestStop);
  if (std::signal(SIGHUP, RequestStop) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

InterruptScope::~InterruptScope() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  if (std::signal(SIGHUP, SIG_DFL) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

std::string InterruptScope::StoppedBy() {
  switch (first_signal) {
    case SIGINT:
      return "Ctrl-C";
    case SIGTERM:
      return "SIGTERM";
    case SIGHUP:
      return "SIGHUP (its terminal was closed)";
    default:
      return "";
  }
}

const std::atomic<bool>& InterruptScope::requested() { return stop_requested; }

const std::atomic<bool>& InterruptScope::terminated() { return by_sigterm; }

}  // namespace muster::cli
