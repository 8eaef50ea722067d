// Cores dealt out to tasks, so that tasks of one machine do not crowd on the same ones.
#pragma once

#include <string>
#include <vector>

#include "muster/base/status.h"

namespace muster::process {

// The cores that this process may run on (sched_getaffinity), ascending: a container's or a
// scheduler's choice is kept to.
absl::StatusOr<std::vector<int>> AvailableCpus();

// For each task's limit (cores, 0: none) the cores it runs on, ascending, for ChildSpec::cpus.
//   - A limit of 1.5 takes 2 cores; one larger than the machine takes all.
//   - While there are cores for all limits, limited tasks share none. Tasks without a limit share
//     what is left, or all cores when nothing is.
//   - Else cores are dealt round and round, so that each has about the same number of tasks.
// Where no task has a limit the answer is empty lists: nobody is bound. INVALID_ARGUMENT for a
// negative limit or one that is no number.
absl::StatusOr<std::vector<std::vector<int>>> DealCpus(const std::vector<int>& available,
                                                       const std::vector<double>& limits);

// "0-3,8": as Linux and taskset write a set.
std::string PrintCpus(const std::vector<int>& cpus);

}  // namespace muster::process
