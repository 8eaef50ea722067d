// What differs between two views: most members are in both, so that the host need not send each
// member the names and addresses of all.
#pragma once

#include <vector>

#include "muster/base/status.h"
#include "muster/membership/view.h"

namespace muster::membership {

// The order of task types in a view: replicas first.
int GetTypeOrder(job::TaskType type);
// Puts members into the order of a view.
void SortMembers(std::vector<Member>* members);

ViewChange GetChange(const View& base, const View& view);
// The inverse: the view that has these differences from `base`. INVALID_ARGUMENT if there is none;
// the change may come from the network.
absl::StatusOr<View> ApplyChange(const View& base, const ViewChange& change);

}  // namespace muster::membership
