// Names of jobs.
#pragma once

#include <string_view>

#include "muster/base/status.h"

namespace muster::job {

// INVALID_ARGUMENT for a name that no new job can have; the message has one like it that would do.
absl::Status CheckName(std::string_view name);
// As CheckName, for a job of a Kubernetes cluster, where pods and services are named after it.
absl::Status CheckClusterName(std::string_view name);
// INVALID_ARGUMENT, in the same way, for a name that no namespace of Kubernetes can have.
absl::Status CheckNamespace(std::string_view name);

}  // namespace muster::job
