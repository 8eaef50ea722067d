// Trials of `muster tune` that are trainings of a model file: their commands, and their runs in
// this process.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/io/file_system.h"
#include "muster/tune/runner.h"
#include "muster/tune/search_file.h"

namespace muster::cli {

// The words after `muster train` that train a point in `model_dir`; max_steps 0: not given.
std::vector<std::string> TrainWords(const tune::SearchFile& search, const tune::Point& point,
                                    const std::string& model_dir, int64_t max_steps = 0);

// Words as a shell takes them.
std::string QuoteCommand(const std::vector<std::string>& words);

// Checks, before any trial, that the model file can be read with points of the space, and that its
// evaluations have the metric. INVALID_ARGUMENT.
absl::Status CheckSearch(io::FileSystem& files, const tune::SearchFile& search);

// `parallel`: how many trials run at a time; they share their feeds (train/input/shared_feeds.h).
// `folder` gives a trial's model folder. Everything must outlive the objective.
std::unique_ptr<tune::Objective> NewTrainingObjective(
    io::FileSystem& files, const Clock& clock, const tune::SearchFile& search, int parallel,
    std::function<std::string(int64_t trial)> folder);

}  // namespace muster::cli
