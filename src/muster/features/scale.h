// ScaleWatch: finds numeric columns that reach a model unscaled, which it learns badly from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/features/batch.h"
#include "muster/features/column.h"
#include "muster/features/transform.h"

namespace muster::features {

// Looks at the first rows of a training run: at the floats of numeric and sequence_numeric columns
// as the model gets them. A column is unscaled if the root mean square of its floats is above
// kLargest; a scaled one has about 1. One owner thread.
class ScaleWatch {
 public:
  static constexpr uint64_t kRows = 10'000;
  static constexpr double kLargest = 1000;

  // `request` is that of the transform whose batches are added. Columns of `exempt` are not looked
  // at: their scale does not matter.
  ScaleWatch(const FeatureSpec& spec, const FeatureRequest& request,
             const std::vector<std::string>& exempt);
  void Add(const FeatureBatch& batch);
  // Once, when kRows rows were added or the data `ended` before that: one line for each column that
  // is unscaled, with the line of the model file that scales it. Otherwise nothing.
  std::vector<std::string> ConsumeWarnings(bool ended);

 private:
  struct Watched {
    size_t place = 0;  // in FeatureBatch::dense
    ColumnSpec column = {};
    double squares = 0, count = 0, largest = 0;
  };

  std::vector<Watched> watched_;
  uint64_t rows_ = 0;
  bool done_ = false;
};

// "NAME: {numeric: INPUT, normalize: auto}": the column's line in a model file.
std::string PrintColumn(const ColumnSpec& column);

}  // namespace muster::features
