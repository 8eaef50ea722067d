#include "muster/launch/kubernetes/leader.h"

#include <cmath>
#include <utility>

#include "absl/time/time.h"

namespace muster::launch::kubernetes {
namespace {

std::string MicroTime(double wall_seconds) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ",
                          absl::FromUnixMicros(static_cast<int64_t>(wall_seconds * 1e6)),
                          absl::UTCTimeZone());
}

}  // namespace

bool Leader::leads() const { return Now() < held_until_; }

bool LeaseSight::IsExpired(const Json& lease, double now) {
  const Json& spec = Child(lease, "spec");
  const std::string holder = GetText(spec, "holderIdentity");
  if (holder.empty()) return true;
  const std::string now_seen = StrCat(holder, " ", GetText(spec, "renewTime"));
  if (now_seen != seen_) {
    seen_ = now_seen;
    seen_at_ = now;
    return false;
  }
  const auto length = static_cast<double>(GetNumber(spec, "leaseDurationSeconds", 15));
  return now - seen_at_ > length;
}

Json Leader::MakeLease(const Json& found) const {
  const std::string now = MicroTime(clock_.WallSeconds());
  const Json& before = Child(found, "spec");
  const bool is_ours = GetText(before, "holderIdentity") == options_.identity;
  Json lease = {{"apiVersion", kLeases.group_version}, {"kind", "Lease"}};
  lease["metadata"] = {{"name", options_.name}, {"namespace", options_.name_space}};
  if (found.is_object()) {
    lease["metadata"]["resourceVersion"] = GetText(Child(found, "metadata"), "resourceVersion");
  }
  Json& spec = lease["spec"];
  spec["holderIdentity"] = options_.identity;
  spec["leaseDurationSeconds"] = static_cast<int64_t>(std::ceil(options_.lease_seconds));
  spec["acquireTime"] = is_ours ? GetText(before, "acquireTime") : now;
  spec["renewTime"] = now;
  spec["leaseTransitions"] = GetNumber(before, "leaseTransitions") + (is_ours ? 0 : 1);
  return lease;
}

absl::StatusOr<bool> Leader::TryOnce() {
  const double began = Now();
  const std::string target = GetTarget(kLeases, options_.name_space, options_.name);
  auto found = client_.Get(target);
  if (absl::IsNotFound(found.status())) {
    MUSTER_RETURN_IF_ERROR(
        client_.Create(GetTarget(kLeases, options_.name_space), MakeLease(nullptr)).status());
  } else {
    MUSTER_RETURN_IF_ERROR(found.status());
    holder_ = GetText(Child(*found, "spec"), "holderIdentity");
    const bool is_ours = holder_ == options_.identity;
    if (!is_ours && !sight_.IsExpired(*found, Now())) return false;
    MUSTER_RETURN_IF_ERROR(client_.Replace(target, MakeLease(*found)).status());
  }
  // Counted from before the call: others count from when they see the renewal.
  held_until_ = began + options_.renew_seconds();
  return true;
}

absl::Status Leader::Run(const std::function<void()>& began,
                         const std::function<void(const std::string& line)>& say) {
  bool leading = false, has_begun = false;
  std::string told;  // the holder that people were told of
  do {
    auto held = TryOnce();
    // Somebody has changed the lease meanwhile, perhaps an earlier sending of this very renewal.
    if (absl::IsAborted(held.status())) held = TryOnce();
    if (!has_begun && absl::IsPermissionDenied(held.status())) return held.status();
    const bool is_other = held.ok() && !*held;
    if (is_other) held_until_ = 0;
    if (held.ok() && *held && !leading) {
      leading = true;
      told.clear();
      say(StrCat("leads: it has ", Describe(), " as ", options_.identity));
      if (!std::exchange(has_begun, true)) began();
    } else if (leading && !leads()) {
      leading = false;
      const std::string_view why = is_other    ? "another operator has it"
                                   : held.ok() ? "it was not renewed in time"
                                               : ToStd(held.status().message());
      say(StrCat("does not lead any more: ", Describe(), " is lost: ", why, "; tries again"));
    }
    if (!held.ok() && !leading && !absl::IsAborted(held.status())) {
      const std::string why(ToStd(held.status().message()));
      if (told != why) say(StrCat("waits: cannot have ", Describe(), ": ", why, "; tries again"));
      told = why;
    }
    if (is_other && told != holder_) {
      told = holder_;
      say(StrCat("waits: ", holder_, " has ", Describe(),
                 "; an operator of other namespaces needs a lease of its own: --lease-namespace"));
    }
  } while (client_.Wait(options_.retry_seconds()));
  return absl::OkStatus();
}

void Leader::Release(KubeClient& client) {
  if (!leads()) return;
  held_until_ = 0;
  const std::string target = GetTarget(kLeases, options_.name_space, options_.name);
  auto found = client.Get(target);
  if (!found.ok() || GetText(Child(*found, "spec"), "holderIdentity") != options_.identity) return;
  (*found)["spec"]["holderIdentity"] = "";
  client.Replace(target, *found).IgnoreError();
}

}  // namespace muster::launch::kubernetes
