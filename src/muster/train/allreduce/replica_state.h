// Sends and receives a replica's state, which another replica takes over: weights, slots, the step,
// the counts of records and every replica's position in the data.
#pragma once

#include "muster/base/status.h"
#include "muster/collective/group.h"
#include "muster/train/loop/hook.h"

namespace muster::train {

// Sent before a state, in little-endian, the byte order of all supported machines.
struct StateHeader {
  int64_t step = 0;
  uint64_t bytes = 0;      // of weights and slots; equal for equal models
  uint64_t ranks = 0;      // the number of positions
  uint64_t positions = 0;  // their bytes: for each position its size (u32) and its text
  RecordCounts records = {};
  uint64_t has_records = 0;
};

// Sends this replica's state to rank `to`, which must call ReceiveState at the same time.
absl::Status SendState(collective::Group& group, int to, const Session& session);
// Replaces weights, slots, step, counts and positions. After an error these are invalid if
// *overwritten is true, else unchanged. `step` is the state's, as the peer said when the epoch
// began. A peer that sends another step, another model or impossible numbers ends the group:
// DATA_LOSS.
absl::Status ReceiveState(collective::Group& group, int from, int64_t step, Session& session,
                          bool* overwritten);

}  // namespace muster::train
