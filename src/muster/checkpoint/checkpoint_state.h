// The writing side of the state file, and the names in a folder; ReadState is in checkpoint.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "muster/checkpoint/checkpoint.h"

namespace muster::checkpoint {

// N of "model.ckpt-N.index".
std::optional<int64_t> StepOfIndex(std::string_view name);

std::string StatePath(const std::string& folder);

// Replaces FOLDER/checkpoint; a reader finds either the old or the new contents.
absl::Status WriteState(io::FileSystem& files, const std::string& folder,
                        const CheckpointState& state);

}  // namespace muster::checkpoint
