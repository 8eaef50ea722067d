// Trials of `muster tune` that are trainings of a model file: their commands, and their runs in
// this process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/io/file_system.h"
#include "muster/tune/runner.h"
#include "muster/tune/search_file.h"

namespace muster::cli {

// A part of a training.
struct TrainingPart {
  int64_t max_steps = 0;  // the step at which it ends; 0: where the whole training does
  std::string continue_from =
      {};  // the checkpoint, of another folder, at which it begins; "": none
};

// The words after `muster train` that train a point in `model_dir`.
std::vector<std::string> TrainWords(const tune::SearchFile& search, const tune::Point& point,
                                    const std::string& model_dir, const TrainingPart& part = {});

// The point as values of --set.
std::vector<std::string> PointSettings(const tune::Space& space, const tune::Point& point);

// Whether one of `flags` is NAME or NAME=VALUE.
bool HasFlag(const std::vector<std::string>& flags, std::string_view name);

// Words as a shell takes them.
std::string QuoteCommand(const std::vector<std::string>& words);

// Checks, before any trial, that the model file can be read with points of the space, and that its
// evaluations have the metric. INVALID_ARGUMENT.
absl::Status CheckSearch(io::FileSystem& files, const tune::SearchFile& search);

// Gives the topics among the search's data fixed ranges (kafka_ranges.h), which are kept in the
// study's folder: all trials read the same records, also those that begin when a topic has more.
absl::Status FixSearchData(io::FileSystem& files, const std::string& folder,
                           tune::SearchFile* search);

// `parallel`: how many trials run at a time; they share their feeds (train/input/shared_feeds.h).
// `folder` gives a trial's model folder. Everything must outlive the objective.
std::unique_ptr<tune::Objective> NewTrainingObjective(
    io::FileSystem& files, const Clock& clock, const tune::SearchFile& search, int parallel,
    std::function<std::string(int64_t trial)> folder);

}  // namespace muster::cli
