// Writes the state file, and parses names of files in a folder. ReadState is in checkpoint.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "muster/checkpoint/checkpoint.h"

namespace muster::checkpoint {

// Returns N for "model.ckpt-N.index"; nullopt for any other name.
std::optional<int64_t> ParseIndexStep(std::string_view name);

std::string StatePath(const std::string& folder);

// Replaces FOLDER/checkpoint; a reader finds either the old or the new contents.
absl::Status WriteState(io::FileSystem& files, const std::string& folder,
                        const CheckpointState& state);

}  // namespace muster::checkpoint
