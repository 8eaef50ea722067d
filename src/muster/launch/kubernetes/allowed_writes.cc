#include "muster/launch/kubernetes/allowed_writes.h"

#include "muster/launch/kubernetes/api/kube_object.h"

namespace muster::launch::kubernetes {
namespace {

constexpr double kLongSeconds = 60;     // between the first and the last of those in a row
constexpr double kForgetSeconds = 180;  // more than the longest pause of a pass that fails

// The words of the server about a right that is missing: `User "x" cannot create resource "pods"`.
bool LacksRight(const absl::Status& status) {
  return absl::IsPermissionDenied(status) &&
         ToStd(status.message()).find(" cannot ") != std::string_view::npos;
}

// Whether the server has not said whether the change is allowed.
bool IsUndecided(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status) || absl::IsUnauthenticated(status) ||
         absl::IsResourceExhausted(status);
}

}  // namespace

std::string AllowedWrites::problem() const {
  const MutexLock lock(&mutex_);
  const bool is_long = last_ - first_ >= kLongSeconds && Now() - last_ < kForgetSeconds;
  if (message_.empty() || !is_long) return "";
  return StrCat("no change has been allowed for ", static_cast<int64_t>(Now() - first_),
                " s: ", message_);
}

void AllowedWrites::Keep(std::string_view target, const absl::Status& status) {
  if (target.ends_with(StrCat("/", kEvents.plural)) || IsUndecided(status)) return;
  const MutexLock lock(&mutex_);
  last_ = Now();
  if (message_.empty()) first_ = last_;
  message_ = LacksRight(status) ? ToStd(status.message()) : "";
}

absl::StatusOr<Json> AllowedWrites::Create(const std::string& target, const Json& object,
                                           std::vector<std::string>* warnings) {
  auto made = calls_.Create(target, object, warnings);
  Keep(target, made.status());
  return made;
}

absl::StatusOr<Json> AllowedWrites::Replace(const std::string& target, const Json& object) {
  auto written = calls_.Replace(target, object);
  Keep(target, written.status());
  return written;
}

absl::StatusOr<Json> AllowedWrites::MergePatch(const std::string& target, const Json& patch) {
  auto changed = calls_.MergePatch(target, patch);
  Keep(target, changed.status());
  return changed;
}

absl::StatusOr<Json> AllowedWrites::StrategicPatch(const std::string& target, const Json& patch) {
  auto changed = calls_.StrategicPatch(target, patch);
  Keep(target, changed.status());
  return changed;
}

absl::Status AllowedWrites::Delete(const std::string& target, const std::string& uid,
                                   int64_t grace_seconds) {
  auto deleted = calls_.Delete(target, uid, grace_seconds);
  Keep(target, deleted);
  return deleted;
}

}  // namespace muster::launch::kubernetes
