// Work on data that is cut into parts (train/part_plan.h), by processes of a job: what the verbs
// that do such work have in common.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "muster/cli/model_flags.h"
#include "muster/train/part_plan.h"

namespace muster::cli {

struct PartFlags {
  int workers = 0;  // 0: this process alone, not in parts
  int task = -1;    // which of the workers this is; -1: who starts them
  int restarts = 3;
  std::string job;
};
// `workers`: what --workers is for.
void AddPartFlags(CLI::App& verb, const std::string& workers, PartFlags* flags);

// INVALID_ARGUMENT for what does not go with --workers.
absl::Status CheckParts(const PartFlags& flags, const DataFlags& data, const HookCallFlags& calls);

// Of the worker's incarnations together: the next one removes the lease that a killed one left.
std::string ReaderOf(const std::string& verb, const PartFlags& flags);

// Whether each part of the plan is there, by part; what killed processes left of others is removed.
absl::StatusOr<std::vector<bool>> PartsDone(io::FileSystem& files, const std::string& folder,
                                            const train::PartPlan& plan);
// For people, where some are there and some are not.
void SayOfParts(const std::string& folder, const std::vector<bool>& done);

// Runs VERB ARGUMENTS --task I for each worker I, with the plan's checkpoint, and prints what they
// write to `out`. ABORTED: the job failed, and why.
absl::Status RunPartJob(const std::string& verb, const PartFlags& flags,
                        const std::vector<std::string>& arguments, const TrainedModelFlags& trained,
                        const train::PartPlan& plan, std::FILE* out);

}  // namespace muster::cli
