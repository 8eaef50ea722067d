// Which segment of data that grows the replicas of a generation take (train/input/told_segments.h):
// all of them call these together.
#pragma once

#include <cstdint>

#include "muster/base/status.h"
#include "muster/collective/group.h"
#include "muster/train/loop/hook.h"

namespace muster::train {

// The chief tells the others segment `number` of session.data.segments. False if it has not begun.
absl::StatusOr<bool> TellSegment(collective::Group& group, bool is_chief, int64_t number,
                                 Session& session);

// At the beginning of a generation: tells the segment in which session.data.positions are.
absl::Status TellPresentSegment(collective::Group& group, bool is_chief, Session& session);

}  // namespace muster::train
