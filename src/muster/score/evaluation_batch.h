// The size of the batches with which an exported model is evaluated.
#pragma once

#include <string>

#include "muster/io/file_system.h"
#include "muster/model/spec/model_spec.h"

namespace muster::score {

// Returns the number of rows in a batch, if the value of an evaluation depends on it (as with a
// softmax among the rows of a batch): the batch size of the training that wrote `checkpoint` ("":
// the newest checkpoint of `model_dir`), else the model's default. Returns 0 if the value does not
// depend on it. Ignores errors, since the caller meets them when it reads the checkpoint.
int EvaluationBatchSize(io::FileSystem& files, const model::ModelSpec& spec,
                        const std::string& model_dir, const std::string& checkpoint);

}  // namespace muster::score
