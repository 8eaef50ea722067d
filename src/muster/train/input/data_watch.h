// DataWatch: looks at the first rows of a training for what is likely a mistake in the model file:
// a column that finds no id, numbers that are not scaled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/features/coverage.h"
#include "muster/features/scale.h"
#include "muster/model/model.h"
#include "muster/train/input/batch_maker.h"

namespace muster::train {

// One owner thread.
class DataWatch {
 public:
  // `maker` makes the batches of `model`.
  DataWatch(const model::Model& model, const BatchMaker& maker);

  // Adds a batch of the epoch. `columns`: its rows as they were read; null if they come from a
  // compiled file. A later epoch, which has the same rows, is not looked at: all rows were added.
  void Add(int64_t epoch, const formats::Columns* columns, const features::FeatureBatch& batch);

  // Both return each warning once. `saw_all`: no row will be added that was not added before.
  //
  // Columns without ids. A compiled file keeps these warnings for later trainings, which have no
  // columns to look at.
  std::vector<std::string> ConsumeColumnWarnings(bool saw_all);
  // Whether ConsumeColumnWarnings() has returned all that it will.
  bool knows_columns() const { return coverage_.done(); }
  // Numbers that are not scaled. Each warning names learning rates that would be too small for
  // scaled ones, too.
  std::vector<std::string> ConsumeScaleWarnings(bool saw_all);

 private:
  features::CoverageWatch coverage_;
  std::optional<features::ScaleWatch> scale_;  // an exported model scales by itself
  std::vector<std::string> slow_parts_;        // further advice for the warnings of scale_
  std::optional<int64_t> first_epoch_;
  bool saw_epoch_ = false;  // whole
};

}  // namespace muster::train
