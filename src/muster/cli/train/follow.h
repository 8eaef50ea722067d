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
#include "muster/data/growing_data.h"
#include "muster/io/file_system.h"
#include "muster/train/loop/hook.h"

namespace muster::cli {

// Adds --follow, --follow-secs and --follow-group.
void AddFollowFlags(CLI::App& verb, TrainFlags* flags);

// INVALID_ARGUMENT if --follow is given with what it cannot follow, or with flags that say when
// data ends. `is_job`: the training was to be one of several processes, or on other machines.
absl::Status CheckFollow(const TrainFlags& flags, bool is_job);

// The folder in which the segments of --follow are written down.
std::string GetSegmentFolder(const TrainFlags& flags);

// Opens the topics of --train, whose segments are written down in GetSegmentFolder, and waits for
// their first records; null without --follow. All arguments but `flags` must outlive the result.
// Errors are those of data::OpenKafkaGrowth.
absl::StatusOr<std::shared_ptr<data::GrowingData>> OpenFollowed(const TrainFlags& flags,
                                                                int64_t batch_size,
                                                                io::FileSystem& files,
                                                                const Clock& clock,
                                                                const std::atomic<bool>& stop);

// Adds the hook of --follow-group. UNAVAILABLE and the like if the brokers refuse the group.
absl::Status AddFollowGroup(const TrainFlags& flags,
                            std::vector<std::shared_ptr<train::Hook>>* hooks);

}  // namespace muster::cli
