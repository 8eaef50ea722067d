// Whether an operator runs that acts on a job: what the Lease says that operators hold while one of
// them leads (leader.h). A job's status names it (kLeaseField).
#pragma once

#include <string>

#include "muster/launch/kubernetes/place/cluster.h"

namespace muster::launch::kubernetes {

// Why no operator acts, and what to do; "" if one does. `found`: the Lease, or NOT_FOUND. Other
// errors say nothing. The text is the same however often it is asked for. `now` is in wall seconds.
std::string DescribeLease(const std::string& lease, const absl::StatusOr<Json>& found, double now);

// As DescribeLease() of the Lease that the cluster has now. "" without the right to see it.
std::string LookForOperator(const std::string& lease, Cluster& cluster, double now);

}  // namespace muster::launch::kubernetes
