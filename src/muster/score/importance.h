// Permutation importance: how much a metric loses when the values of one input are exchanged among
// the rows, which takes from the model what the input says about a row (Breiman, "Random Forests",
// 2001; sklearn.inspection.permutation_importance).
//
// It says what this model uses, not what could be predicted from an input: of two inputs that say
// the same, each seems unimportant while the other is there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/io/file_system.h"
#include "muster/metrics/metrics.h"
#include "muster/score/scorer.h"
#include "muster/train/input/input.h"

namespace muster::score {

struct ImportanceSpec {
  // Labelled data, which is read once and kept in memory. Batches have reader.batch_size rows.
  train::InputSpec input = {};
  metrics::MetricsSpec metrics = {};
  // "NAME", or "NAME:lower" or "NAME:higher" for what is better; "": DefaultMetric. Without a word,
  // less is better of a metric whose name has "loss" or "error" in it, and more of any other.
  std::string metric = {};
  int repeats = 5;
  uint64_t seed = 1;
  uint64_t max_rows = 0;  // the first rows of the data; 0: all
};

// "auc", "accuracy" (multi_class), "mean_squared_error" (regression), "loss" (an exported model).
std::string DefaultMetric(const model::ModelSpec& model);

struct InputImportance {
  std::string input = {};
  double mean = 0;                  // of `losses`: how much worse the metric becomes
  double deviation = 0;             // the population's
  std::vector<double> losses = {};  // of each repeat
};

struct Importance {
  std::string metric = {};
  bool lower_is_better = false;
  double value = 0;  // of the metric, with the data as they are
  uint64_t rows = 0;
  uint64_t bad_records = 0;                  // left out
  std::vector<InputImportance> inputs = {};  // the most important first
};

// The inputs are the fields that the model reads, without label and weight; a list is exchanged as
// a whole, also if it has no values. The permutations depend on the seed, the input's place in the
// model file and the repeat. `progress` is called with the rows scored so far, and how many there
// will be. INVALID_ARGUMENT for a metric that the model does not have, that says nothing about
// quality, or that is not a number for the data; errors of reading and scoring.
absl::StatusOr<Importance> MeasureImportance(
    io::FileSystem& files, Scorer& scorer, const ImportanceSpec& spec,
    const std::function<void(uint64_t done, uint64_t all)>& progress);

}  // namespace muster::score
