// Descriptions of all jobs that this machine knows, for muster list.
#pragma once

#include <vector>

#include "muster/cli/jobs/job_tellers.h"
#include "muster/formats/json_fields.h"

namespace muster::cli {

// Describes the jobs that have a folder on this machine, in any order. A namespace of a Kubernetes
// cluster is asked once for all of its jobs, and a cluster that does not answer is asked once in
// all. What could not be described is said.
absl::StatusOr<std::vector<formats::Json>> DescribeAllHere(const Say& say);

}  // namespace muster::cli
