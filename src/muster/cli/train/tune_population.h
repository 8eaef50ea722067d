// Trials of a population (tune/population.h) that are trainings of a model file: how long each one
// trains, from which checkpoint it continues, and which values it may change.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/cli/train/tune_training.h"
#include "muster/io/file_system.h"
#include "muster/tune/search_file.h"

namespace muster::cli {

// The part of a training that the trial is: of a trial of no population all of it. `folder` gives
// the model folders of trials, each of which trains with `replicas`. Errors are those of the
// trial's model file.
absl::StatusOr<TrainingPart> GetTrainingPart(
    io::FileSystem& files, const tune::SearchFile& search, const tune::Trial& trial,
    const std::function<std::string(int64_t trial)>& folder, int replicas = 1);

// The words after `muster train` of the trainings that give the trial again, one after the other:
// each continues from the model folder of the one before it; the last one is `model_dir`. Trials of
// one point in succession are one training.
std::vector<std::vector<std::string>> ReproducingTrainings(const tune::SearchFile& search,
                                                           const tune::History& history,
                                                           const tune::Trial& trial,
                                                           const std::string& model_dir);

// Checks that no parameter changes the shape of the model's weights or of their optimizers' slots,
// and that no flag says how long a trial trains. INVALID_ARGUMENT names it.
absl::Status CheckPopulation(io::FileSystem& files, const tune::SearchFile& search);

}  // namespace muster::cli
