// What a replica takes over from another: weights, slots, the step and every replica's position in
// the data.
#pragma once

#include "muster/base/status.h"
#include "muster/collective/group.h"
#include "muster/train/hook.h"

namespace muster::train {

// Ahead of a state; little-endian, as all our machines are.
struct StateHeader {
  int64_t step = 0;
  uint64_t bytes = 0;      // of weights and slots: the same model has the same
  uint64_t ranks = 0;      // positions
  uint64_t positions = 0;  // bytes: for each position its size (u32) and its text
  RecordCounts records = {};
  uint64_t has_records = 0;
};

// To one rank, which calls ReceiveState at the same time.
absl::Status SendState(collective::Group& group, int to, const Session& session);
// Replaces weights, slots, step and positions. After an error they are worth nothing if
// *overwritten is true then, and as they were if not. `step`: that of the state, as the peer told
// when the epoch began. A peer with another, with another model or with numbers that cannot be ends
// the group: DATA_LOSS.
absl::Status ReceiveState(collective::Group& group, int from, int64_t step, Session& session,
                          bool* overwritten);

}  // namespace muster::train
