#include "muster/cli/interrupt.h"

#include <csignal>

namespace muster::cli {
namespace {

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void RequestStop(int signal) {
  if (stop_requested.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

InterruptScope::InterruptScope() {
  stop_requested = false;
  std::signal(SIGINT, RequestStop);
  std::signal(SIGTERM, RequestStop);
}

InterruptScope::~InterruptScope() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

const std::atomic<bool>& InterruptScope::requested() { return stop_requested; }

}  // namespace muster::cli
