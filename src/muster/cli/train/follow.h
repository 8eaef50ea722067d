// muster train --follow: a training that continues as records come into its topic.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/cli/train/train_run.h"
#include "muster/io/file_system.h"
#include "muster/model/spec/model_spec.h"
#include "muster/train/loop/hook.h"
#include "muster/train/loop/specs.h"

namespace muster::cli {

// Adds --follow, --follow-secs and --follow-group.
void AddFollowFlags(CLI::App& verb, TrainFlags* flags);

// INVALID_ARGUMENT if --follow is given with what it cannot follow, or with flags that say when
// data ends. `is_elsewhere`: the training was to be on a cluster.
absl::Status CheckFollow(const TrainFlags& flags, bool is_elsewhere);

// The folder in which the segments of --follow are written down.
std::string GetSegmentFolder(const TrainFlags& flags);

// With --follow and --fresh-data, for a job of this machine: removes the segments that are written
// down, before its tasks begin. A task that is started again must not do so.
absl::Status ForgetSegments(const TrainFlags& flags, io::FileSystem& files);

// With --follow: sets the data that grows, whose segments are written down in GetSegmentFolder. A
// process that trains alone waits for the first records. All arguments but `flags` must outlive the
// training. Errors are those of data::OpenKafkaGrowth.
absl::Status SetFollowed(const TrainFlags& flags, const model::ModelSpec& model,
                         io::FileSystem& files, const Clock& clock, const std::atomic<bool>& stop,
                         train::TrainSpec* spec);

// Adds the hook of --follow-group to those of the chief. UNAVAILABLE and the like if the brokers
// refuse the group.
absl::Status AddFollowGroup(const TrainFlags& flags,
                            std::vector<std::shared_ptr<train::Hook>>* hooks);

}  // namespace muster::cli
