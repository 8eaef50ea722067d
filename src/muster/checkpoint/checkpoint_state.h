// The writing side of the state file; ReadState is in checkpoint.h.
#pragma once

#include <string>

#include "muster/checkpoint/checkpoint.h"

namespace muster::checkpoint {

std::string StatePath(const std::string& folder);

// Replaces FOLDER/checkpoint; a reader finds the old or the new.
absl::Status WriteState(io::FileSystem& files, const std::string& folder,
                        const CheckpointState& state);

}  // namespace muster::checkpoint
