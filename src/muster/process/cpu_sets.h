// Assigns cores to tasks, so that the tasks of one machine do not crowd on the same cores.
#pragma once

#include <string>
#include <vector>

#include "muster/base/status.h"

namespace muster::process {

// The cores that this process may run on (sched_getaffinity), ascending: limits set by a container
// or a scheduler are respected.
absl::StatusOr<std::vector<int>> AvailableCpus();

// Returns for each task's limit (cores, 0: none) its cores, ascending, for ChildSpec::cpus.
//   - A limit of 1.5 takes 2 cores; one larger than the machine takes all.
//   - While there are cores for all limits, limited tasks share none. Tasks without a limit share
//     what is left, or all cores when nothing is.
//   - Else cores are assigned in turn, so that each has about the same number of tasks.
// If no task has a limit, all lists are empty: no task is bound. INVALID_ARGUMENT for a negative
// limit or one that is not a number.
absl::StatusOr<std::vector<std::vector<int>>> DealCpus(const std::vector<int>& available,
                                                       const std::vector<double>& limits);

// "0-3,8": the notation of Linux and taskset.
std::string PrintCpus(const std::vector<int>& cpus);

}  // namespace muster::process
