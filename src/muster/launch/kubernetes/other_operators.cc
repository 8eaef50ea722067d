#include "muster/launch/kubernetes/other_operators.h"

namespace muster::launch::kubernetes {
namespace {

constexpr double kLookSeconds = 5;  // between two looks at a Lease

}  // namespace

absl::StatusOr<bool> OtherOperators::Run(const std::string& lease, const std::string& job) {
  const double now = static_cast<double>(clock_.MonotonicNanos()) * 1e-9;
  {
    const MutexLock lock(&mutex_);
    const auto known = leases_.find(lease);
    if (known != leases_.end() && now < known->second.looked_at + kLookSeconds) {
      return known->second.runs;
    }
  }
  const size_t slash = lease.find('/');
  if (slash == lease.npos) return false;
  const auto found = get_(GetTarget(kLeases, lease.substr(0, slash), lease.substr(slash + 1)));
  if (!found.ok() && !absl::IsNotFound(found.status())) {
    return Annotate(found.status(),
                    StrCat("cannot see whether the operators of the lease ", lease, " run it"));
  }
  bool ran = false, runs = false;
  {
    const MutexLock lock(&mutex_);
    Seen& seen = leases_[lease];
    ran = seen.runs;
    runs = found.ok() && !seen.sight.IsExpired(*found, now);
    seen.looked_at = now;
    seen.runs = runs;
  }
  if (runs && !ran) {
    say_(StrCat("leaves the job ", job, " and others alone: ",
                GetText(Child(*found, "spec"), "holderIdentity"), " runs them by the lease ", lease,
                ". Operators of different leases should not watch the same namespace: give each a "
                "--namespace of its own, or the same --lease-namespace"));
  } else if (ran && !runs) {
    say_(StrCat("takes over the jobs of the lease ", lease, ", which no operator holds any more"));
  }
  return runs;
}

}  // namespace muster::launch::kubernetes
