// Permutation importance: how much a metric becomes worse when the values of one input are
// exchanged among the rows, so that the input no longer says anything about its row (Breiman,
// "Random Forests", 2001; sklearn.inspection.permutation_importance).
//
// It measures what this model uses, not what could be predicted from an input: of two inputs with
// the same information each seems unimportant while the other is there.
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
  // "NAME", "NAME:lower" or "NAME:higher", which says which values are better; "": DefaultMetric.
  // For a plain NAME lower values are better if it contains "loss" or "error", else higher ones.
  std::string metric = {};
  int repeats = 5;
  uint64_t seed = 1;
  uint64_t max_rows = 0;  // the first rows of the data; 0: all
};

// Returns "auc", "accuracy" (multi_class), "mean_squared_error" (regression) or "loss" (an exported
// model).
std::string DefaultMetric(const model::ModelSpec& model);

struct InputImportance {
  std::string input = {};
  double mean = 0;                  // the mean of `losses`: by how much the metric becomes worse
  double deviation = 0;             // the population's standard deviation of `losses`
  std::vector<double> losses = {};  // one for each repeat
};

struct Importance {
  std::string metric = {};
  bool lower_is_better = false;
  double value = 0;  // the metric's value for the data as they are
  uint64_t rows = 0;
  uint64_t bad_records = 0;                  // records that were left out
  std::vector<InputImportance> inputs = {};  // the most important first
};

// Measures the importance of each field that the model reads, except label and weight; a list is
// exchanged as a whole, also if it has no values. The permutations depend on the seed, the input's
// place in the model file and the repeat. `progress` is called with the number of rows scored so
// far and of all rows to score. INVALID_ARGUMENT for a metric that the model does not have, that
// does not measure quality, or that is not a number for the data; errors of reading and scoring.
absl::StatusOr<Importance> MeasureImportance(
    io::FileSystem& files, Scorer& scorer, const ImportanceSpec& spec,
    const std::function<void(uint64_t done, uint64_t all)>& progress);

}  // namespace muster::score
