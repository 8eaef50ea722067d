// Names of jobs.
#pragma once

#include <string_view>

#include "muster/base/status.h"

namespace muster::job {

// INVALID_ARGUMENT for a name that a new job cannot have, on this machine or on Kubernetes.
absl::Status CheckName(std::string_view name);

}  // namespace muster::job
