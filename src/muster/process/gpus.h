// GPUs dealt out to tasks through CUDA_VISIBLE_DEVICES.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/base/status.h"

namespace muster::process {

// The GPUs of this process by the names that CUDA_VISIBLE_DEVICES takes: those of `inherited` (the
// variable's value; numbers, GPU-... or MIG-... ids), up to the first that CUDA would stop at
// (empty or -1); without one, 0 to n-1 for the files nvidia0, nvidia1, ... of `device_folder`
// ("/dev").
std::vector<std::string> VisibleGpus(const std::optional<std::string>& inherited,
                                     const std::string& device_folder);

// For each task's wish the value of its CUDA_VISIBLE_DEVICES: "" for none. No two tasks share a
// GPU. Where no task wishes any, no task gets a value and the variable stays as it is.
// FAILED_PRECONDITION when there are too few: how many are wished for and which there are.
absl::StatusOr<std::vector<std::optional<std::string>>> DealGpus(
    const std::vector<std::string>& visible, const std::vector<int>& wishes);

}  // namespace muster::process
