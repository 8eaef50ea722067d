// Copies the state of a replica to other replicas: weights, slots, the step, the counts of records
// and every replica's position in the data.
#pragma once

#include <cstdint>

#include "muster/base/status.h"
#include "muster/collective/group.h"
#include "muster/train/allreduce/replicas.h"
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

// Copies the state that all donors have to the receivers. The first donor sends the header; large
// variables come from all donors in turn, a piece from each. Each receiver forwards what it
// receives to the next one, so that many receivers take little longer than one. All ranks call it
// at the same time with the same `transfer` and `step`, the step of the state, which the donors
// reported when the generation began; those that have no part in the transfer do nothing. Returns
// whether this rank is a receiver. After an error the state of a receiver is invalid if
// *overwritten is true, else unchanged. A first donor that sends another step, another model or
// impossible numbers ends the group: DATA_LOSS.
absl::StatusOr<bool> ShareState(collective::Group& group, const StateTransfer& transfer,
                                int64_t step, Session& session, bool* overwritten);

}  // namespace muster::train
