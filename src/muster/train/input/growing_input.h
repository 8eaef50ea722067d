// The input of a training on data that grows (data/growing_data.h): its segments, one after the
// other, each as one epoch with the segment's number. A position with epoch N continues segment N,
// so that a training that was killed takes each record once, in the same batches.
#pragma once

#include <memory>

#include "muster/base/status.h"
#include "muster/train/input/batch_source.h"
#include "muster/train/input/input.h"

namespace muster::train {

// Opens spec.growth, which must be set. The input does not end: when it has no further records yet,
// its Next returns a batch with `is_none_yet`, after less than a second. Its errors are those of
// Input and of GrowingData.
absl::StatusOr<std::unique_ptr<BatchSource>> OpenGrowing(io::FileSystem& files,
                                                         const model::Model& model,
                                                         const InputSpec& spec,
                                                         const data::Position* start);

// Opens the newest segments of spec.growth that have begun, for an evaluation: of a million records
// in all, or somewhat more, or all segments if they have fewer. The input ends after them.
absl::StatusOr<std::unique_ptr<BatchSource>> OpenNewestSegments(io::FileSystem& files,
                                                                const model::Model& model,
                                                                const InputSpec& spec);

}  // namespace muster::train
