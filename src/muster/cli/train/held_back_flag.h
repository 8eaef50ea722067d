// --eval 10%: a share of the training data is held back for the evaluations.
#pragma once

#include <string>

#include "muster/base/status.h"
#include "muster/cli/train/train_run.h"

namespace muster::cli {

// Whether the words of --eval are a share and no data: "10%", "0.5%". A file of that name is
// written as ./10%.
bool NamesShare(const std::string& text);

// Divides --train between the training and its evaluations where --eval names a share.
// INVALID_ARGUMENT for a share that is none, and for training data that can be read only once.
absl::Status HoldBack(TrainFlags* flags);

}  // namespace muster::cli
