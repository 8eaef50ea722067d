#include "muster/launch/kubernetes/api/call_crew.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "muster/base/mutex.h"

namespace muster::launch::kubernetes {
namespace {

constexpr size_t kCallsOfAHelper = 3;  // at least, or starting its thread does not pay

}  // namespace

int CallCrew::Take(int wanted) {
  int free = free_.load();
  while (free > 0 && wanted > 0) {
    const int taken = std::min(free, wanted);
    if (free_.compare_exchange_weak(free, free - taken)) return taken;
  }
  return 0;
}

absl::Status CallCrew::Run(size_t count, const std::function<absl::Status(size_t number)>& call) {
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  Mutex mutex;
  size_t first = count;
  absl::Status status;
  const auto work = [&] {
    while (!failed) {
      const size_t number = next++;
      if (number >= count) return;
      absl::Status outcome = call(number);
      if (outcome.ok()) continue;
      failed = true;
      const MutexLock lock(&mutex);
      if (number > first) continue;
      first = number;
      status = std::move(outcome);
    }
  };
  --free_;
  const int helpers = Take(static_cast<int>(std::min<size_t>(count / kCallsOfAHelper, 64)));
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < helpers; ++i) threads.emplace_back(work);
    work();
  }
  free_ += helpers + 1;
  return status;
}

}  // namespace muster::launch::kubernetes
