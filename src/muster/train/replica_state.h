// What a replica takes over from another: weights, slots, the step and every replica's position in
// the data.
#pragma once

#include "muster/base/status.h"
#include "muster/collective/group.h"
#include "muster/train/hook.h"

namespace muster::train {

// To one rank, which calls ReceiveState at the same time.
absl::Status SendState(collective::Group& group, int to, const Session& session);
// Replaces weights, slots, step and positions. After an error they are worth nothing if
// *overwritten is true then, and as they were if not. A peer of another model ends the group.
absl::Status ReceiveState(collective::Group& group, int from, Session& session, bool* overwritten);

}  // namespace muster::train
