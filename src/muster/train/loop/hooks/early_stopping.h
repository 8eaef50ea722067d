// Early stopping: ends a training when the results of its evaluations, read from the event files,
// say so (tf.estimator.experimental.stop_if_*_hook).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "muster/base/status.h"
#include "muster/train/loop/exporter.h"
#include "muster/train/loop/hook.h"

namespace muster::train {

struct EarlyStopping {
  enum class Kind { kNoIncrease, kNoDecrease, kHigher, kLower };
  Kind kind = Kind::kNoDecrease;
  std::string metric = "loss";
  int64_t max_steps_without = 0;  // kNoIncrease, kNoDecrease: since the best evaluation
  double threshold = 0;           // kHigher, kLower: must be passed, not only reached
  int64_t min_steps = 0;          // evaluations before this step do not count
  std::string eval_folder = {};   // "": MODEL_DIR/eval
  // How often the folder is read, in addition to after each evaluation of TrainAndEvaluate: by
  // steps, or else by time.
  int64_t run_every_steps = 0;
  double run_every_secs = 60;
  friend bool operator==(const EarlyStopping&, const EarlyStopping&) = default;
};

// Returns why a training with these evaluations (step -> metrics) should stop; nullopt if it should
// continue.
// INVALID_ARGUMENT when an evaluation does not have the metric.
absl::StatusOr<std::optional<std::string>> WhyStop(const EarlyStopping& spec,
                                                   const std::map<int64_t, Metrics>& evaluations);

// "METRIC:no_increase:STEPS", "METRIC:no_decrease:STEPS", "METRIC:higher:THRESHOLD",
// "METRIC:lower:THRESHOLD", each optionally followed by ":min_steps=STEPS".
absl::StatusOr<EarlyStopping> ParseEarlyStopping(const std::string& text);

std::unique_ptr<Hook> NewEarlyStopping(EarlyStopping spec);

}  // namespace muster::train
