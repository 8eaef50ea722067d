// ScaleWatch: finds numeric columns that reach a model unscaled, which spoils its training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/features/batch.h"
#include "muster/features/column.h"
#include "muster/features/transform.h"

namespace muster::features {

// Watches the floats of numeric and sequence_numeric columns, as the model gets them, in the first
// rows of a training run. A column is unscaled if the root mean square of its floats is above
// kLargest; for a scaled one it is about 1. One owner thread.
class ScaleWatch {
 public:
  static constexpr uint64_t kRows = 10'000;
  static constexpr double kLargest = 1000;

  // `request` is the one of the transform whose batches are added. Columns of `exempt` are not
  // checked: their scale does not matter.
  ScaleWatch(const FeatureSpec& spec, const FeatureRequest& request,
             const std::vector<std::string>& exempt);
  void Add(const FeatureBatch& batch);
  // Returns warnings once, when kRows rows were added or the data `ended` before that: one line for
  // each column that is unscaled, with the line of the model file that scales it. Otherwise returns
  // nothing.
  std::vector<std::string> ConsumeWarnings(bool ended);

 private:
  struct Watched {
    size_t place = 0;  // index in FeatureBatch::dense
    ColumnSpec column = {};
    double squares = 0, count = 0, largest = 0;
  };

  std::vector<Watched> watched_;
  uint64_t rows_ = 0;
  bool done_ = false;
};

// Prints the column's line in a model file: "NAME: {numeric: INPUT, normalize: auto}".
std::string PrintColumn(const ColumnSpec& column);

}  // namespace muster::features
