#include "muster/cli/common/interrupt.h"

#include <csignal>

namespace muster::cli {
namespace {

std::atomic<bool> stop_requested{false};
std::atomic<int> first_signal{0};
std::atomic<bool> by_sigterm{false};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void RequestStop(int signal) {
  int none = 0;
  // This is set first, so that code that sees the request knows its kind.
  if (first_signal.compare_exchange_strong(none, signal)) by_sigterm = signal != SIGINT;
  if (stop_requested.exchange(true) && signal != SIGHUP) {
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
