// Assigns GPUs to tasks through CUDA_VISIBLE_DEVICES.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/base/status.h"

namespace muster::process {

// The GPUs of this process, named as CUDA_VISIBLE_DEVICES does: those of `inherited` (the
// variable's value; numbers, GPU-... or MIG-... ids), up to the first at which CUDA would stop
// (empty or -1); if the variable is not set, 0 to n-1 for the files nvidia0, nvidia1, ... of
// `device_folder` ("/dev").
std::vector<std::string> VisibleGpus(const std::optional<std::string>& inherited,
                                     const std::string& device_folder);

// Returns for each task's number of GPUs the value of its CUDA_VISIBLE_DEVICES: "" for none. No two
// tasks share a GPU. If no task wants any, no task gets a value and the variable stays as it is.
// FAILED_PRECONDITION if there are too few: says how many are wanted and which exist.
absl::StatusOr<std::vector<std::optional<std::string>>> DealGpus(
    const std::vector<std::string>& visible, const std::vector<int>& wishes);

}  // namespace muster::process
