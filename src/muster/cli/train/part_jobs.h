// Shared by the verbs that process data in parts (score/part_plan.h) with the processes of a job.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "muster/cli/jobs/yarn_flags.h"
#include "muster/cli/train/model_flags.h"
#include "muster/score/part_plan.h"

namespace muster::cli {

struct PartFlags {
  int workers = 0;  // 0: only this process, without parts
  int task = -1;    // the index of this worker; -1: the process that starts them
  int restarts = 3;
  std::string job;
  std::string on;  // where the job runs; "": on this machine
  YarnFlags yarn;

  bool is_elsewhere() const { return !on.empty(); }
};
// `workers` says what --workers is for, in the help.
void AddPartFlags(CLI::App& verb, const std::string& workers, PartFlags* flags);

// INVALID_ARGUMENT for flags that cannot be combined with --workers, and for data that the workers
// do not reach. What CheckYarnData returns for a job on YARN.
absl::Status CheckParts(io::FileSystem& files, const PartFlags& flags, const DataFlags& data,
                        const HookCallFlags& calls);

// INVALID_ARGUMENT for the value of a flag that is a path of this machine alone, where the job runs
// elsewhere.
absl::Status CheckPartPath(const PartFlags& flags, const char* name, const std::string& path);

// Returns one name for all incarnations of a worker: the next one removes the lease that a killed
// one left.
std::string DescribeReader(const std::string& verb, const PartFlags& flags);

// Returns which parts of the plan are done, by part. Removes unfinished parts of killed processes.
absl::StatusOr<std::vector<bool>> PartsDone(io::FileSystem& files, const std::string& folder,
                                            const score::PartPlan& plan);
// Returns where the bad records of a part go, in the folder that --rejects names with --workers; ""
// if --rejects was not given. Creates the folder if needed.
absl::StatusOr<std::string> RejectsPath(io::FileSystem& files, const std::string& folder,
                                        const score::PartPlan& plan, int part);
// Tells people which parts exist already, if some do and some do not.
void PrintDoneParts(const std::string& folder, const std::vector<bool>& done);

// Runs VERB ARGUMENTS --task I for each worker I, with this checkpoint, and prints what the
// workers write to `out`. ABORTED if the job failed; the message says why. `undo`: called after an
// error if nothing of the job runs any more.
absl::Status RunPartJob(const std::string& verb, const PartFlags& flags,
                        const std::vector<std::string>& arguments, const std::string& checkpoint,
                        std::FILE* out, const std::function<void()>& undo = {});

}  // namespace muster::cli
