// CallCrew: many small calls at the same time, on a few threads that all callers share. More calls
// at a time than a server has cores for make each of them slower, those of others too.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

#include "muster/base/status.h"

namespace muster::launch::kubernetes {

// Any thread.
class CallCrew {
 public:
  // Helpers start calls of a caller as long as fewer than `at_once` threads, callers included, are
  // at work. With 1 each caller makes its calls one after the other, in order.
  explicit CallCrew(int at_once) : free_(at_once) {}

  // Calls call(0) ... call(count - 1), on the calling thread and those helpers that are free now.
  // After a failure no further call begins. Returns the failure of the lowest number.
  absl::Status Run(size_t count, const std::function<absl::Status(size_t number)>& call);

 private:
  int Take(int wanted);

  std::atomic<int> free_;  // less than 0 where more callers than `at_once` are at work
};

}  // namespace muster::launch::kubernetes
