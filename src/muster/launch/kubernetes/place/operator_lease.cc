#include "muster/launch/kubernetes/place/operator_lease.h"

#include "absl/time/time.h"

namespace muster::launch::kubernetes {
namespace {

// Beyond the lease's own time: the clocks of two machines differ.
constexpr double kClockDifference = 60;

}  // namespace

std::string DescribeLease(const std::string& lease, const absl::StatusOr<Json>& found, double now) {
  if (!found.ok() && !absl::IsNotFound(found.status())) return "";
  std::string why = "does not exist";
  if (found.ok()) {
    const Json& spec = Child(*found, "spec");
    const std::string renewed = GetText(spec, "renewTime");
    absl::Time time;
    std::string error;
    if (GetText(spec, "holderIdentity").empty()) {
      why = "was given back by the last one";
    } else if (!absl::ParseTime(absl::RFC3339_full, renewed, &time, &error)) {
      return "";
    } else {
      const double age = now - absl::ToDoubleSeconds(time - absl::UnixEpoch());
      const auto length = static_cast<double>(GetNumber(spec, "leaseDurationSeconds", 15));
      if (age <= length + kClockDifference) return "";
      why = StrCat("was renewed last at ", renewed);
    }
  }
  const std::string name_space = lease.substr(0, lease.find('/'));
  return StrCat("no operator runs: its lease ", lease, " ", why,
                "; nothing happens to the job until muster operator runs again (kubectl get pods "
                "--namespace ",
                name_space, ")");
}

std::string LookForOperator(const std::string& lease, Cluster& cluster, double now) {
  const size_t slash = lease.find('/');
  if (slash == lease.npos) return "";
  const std::string target = GetTarget(kLeases, lease.substr(0, slash), lease.substr(slash + 1));
  return DescribeLease(lease, cluster.client->Get(target), now);
}

}  // namespace muster::launch::kubernetes
