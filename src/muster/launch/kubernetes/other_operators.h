// OtherOperators: whether operators of another Lease run a job. Operators that watch the same
// namespace and have different Leases all lead, so a job belongs to the Lease that its status names
// (kLeaseField), which is claimed by a write with the version that was read. The operators of any
// other Lease leave the job alone until that one is given back, gone, or not renewed for its
// length.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/launch/kubernetes/leader.h"

namespace muster::launch::kubernetes {

// Any thread.
class OtherOperators {
 public:
  // `get` returns the object at a target. `say` gets a line for people when jobs of a Lease begin
  // to be left alone, and when they are taken over.
  OtherOperators(std::function<absl::StatusOr<Json>(const std::string& target)> get,
                 const Clock& clock, std::function<void(const std::string& line)> say)
      : get_(std::move(get)), clock_(clock), say_(std::move(say)) {}

  // Whether the Lease "NAMESPACE/NAME" is held, as of some seconds ago. At the first look it is, if
  // it has a holder: whether that one renews it is not known yet. `job` is for people. An error
  // means that nobody knows, such as without the right to see the Lease.
  absl::StatusOr<bool> Run(const std::string& lease, const std::string& job);

 private:
  struct Seen {
    LeaseSight sight = {};
    double looked_at = 0;
    bool runs = false;
  };

  const std::function<absl::StatusOr<Json>(const std::string& target)> get_;
  const Clock& clock_;
  const std::function<void(const std::string& line)> say_;
  Mutex mutex_;
  std::map<std::string, Seen> leases_ ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace muster::launch::kubernetes
