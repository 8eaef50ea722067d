// AllowedWrites: calls of the API server that remember whether changes are allowed at all, so that
// an operator whose rights are missing does not look healthy.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/launch/kubernetes/api/kube_calls.h"

namespace muster::launch::kubernetes {

// Hands each call on to `calls`. Any thread.
class AllowedWrites : public KubeCalls {
 public:
  // Both must outlive it.
  AllowedWrites(KubeCalls& calls, const Clock& clock) : calls_(calls), clock_(clock) {}

  // What the server said last, if for a minute it has forbidden each change for want of a right.
  // "" otherwise: also when a quota or a policy refuses an object, when none was tried lately, and
  // for events, which are of little use.
  std::string problem() const;

  absl::StatusOr<Json> Get(const std::string& target) override { return calls_.Get(target); }
  absl::StatusOr<Json> Create(const std::string& target, const Json& object,
                              std::vector<std::string>* warnings = nullptr) override;
  absl::StatusOr<Json> Replace(const std::string& target, const Json& object) override;
  absl::StatusOr<Json> MergePatch(const std::string& target, const Json& patch) override;
  absl::StatusOr<Json> StrategicPatch(const std::string& target, const Json& patch) override;
  absl::Status Delete(const std::string& target, const std::string& uid,
                      int64_t grace_seconds = -1) override;

 private:
  double Now() const { return static_cast<double>(clock_.MonotonicNanos()) * 1e-9; }
  void Keep(std::string_view target, const absl::Status& status);

  KubeCalls& calls_;
  const Clock& clock_;
  mutable Mutex mutex_;
  std::string message_ ABSL_GUARDED_BY(mutex_) = {};  // of the last one; "": it was allowed
  double first_ ABSL_GUARDED_BY(mutex_) = 0;          // of those in a row, in monotonic seconds
  double last_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster::launch::kubernetes
