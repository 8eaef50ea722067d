// muster train --follow --follow-group: commits what checkpoints have trained to a consumer group.
#pragma once

#include <memory>

#include "muster/data/kafka/trained_offsets.h"
#include "muster/train/loop/hook.h"

namespace muster::cli {

// A segment's end is committed when a checkpoint on disk has all of the segment. A commit that
// fails is a warning, once in a row, and is done again after the next checkpoint.
std::shared_ptr<train::Hook> NewFollowGroupHook(std::unique_ptr<data::TrainedOffsets> offsets);

}  // namespace muster::cli
