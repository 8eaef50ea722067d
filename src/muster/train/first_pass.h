// The first pass over the training data: it finds the numbers that the columns of a model take from
// it (features/measure.h), before the first step.
//
// The numbers are computed once: the model folder keeps them with the spec, so that a training that
// continues has the same numbers, whatever its data. Replicas that do not see the folder compute
// the same numbers from the same data, and compare them before the first step (base/agreement.h).
#pragma once

#include <atomic>
#include <string>

#include "muster/base/status.h"
#include "muster/io/file_system.h"
#include "muster/model/spec/model_spec.h"
#include "muster/train/input/input.h"
#include "muster/train/loop/progress.h"

namespace muster::train {

// Reads all of the data of `input` once, whatever its shard, order and epochs, and sets the numbers
// of `model`. The same data gives the same numbers, to the bit. Rows whose values do not fit are
// left out, up to input.reader.max_bad_records. Reports to `progress`, and warns of columns without
// any value. FAILED_PRECONDITION for a stream of batches, which can be read only
// once; CANCELLED when `stop` became true.
absl::Status MeasureColumns(io::FileSystem& files, const InputSpec& input, Progress& progress,
                            const std::atomic<bool>& stop, model::ModelSpec* model);

// Copies into `model` the numbers that the spec in the model folder `folder`, if there is one, has
// for columns that are otherwise equal.
absl::Status CopyMeasured(io::FileSystem& files, const std::string& folder,
                          model::ModelSpec* model);

}  // namespace muster::train
