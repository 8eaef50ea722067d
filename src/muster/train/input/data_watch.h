// DataWatch: looks at the first rows of a training for what is likely a mistake in the model file:
// a column that finds no id, numbers that are not scaled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/data/reader.h"
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

  // Says where reading begins, once for each shard; null: at the beginning.
  void Begin(const data::Position* start);
  // Adds a batch of the epoch. `columns`: its rows as they were read; null if they come from a
  // compiled file. After the first epoch of which all shards are read whole, nothing is looked at:
  // all rows were added.
  void Add(int64_t epoch, const formats::Columns* columns, const features::FeatureBatch& batch);

  // Both return each warning once. `saw_all`: no row with columns will be added any more; `ended`:
  // no batch will.
  //
  // Columns without ids. A compiled file keeps these warnings for later trainings, which have no
  // columns to look at.
  std::vector<std::string> ConsumeColumnWarnings(bool saw_all);
  // Whether ConsumeColumnWarnings() has returned all that it will.
  bool knows_columns() const { return coverage_.done(); }
  // Numbers that are not scaled. Each warning names learning rates that would be too small for
  // scaled ones, too.
  std::vector<std::string> ConsumeScaleWarnings(bool ended);

 private:
  features::CoverageWatch coverage_;
  std::optional<features::ScaleWatch> scale_;  // an exported model scales by itself
  std::vector<std::string> slow_parts_;        // further advice for the warnings of scale_
  int64_t whole_epoch_ = 0;                    // the first of which all shards are read whole
  bool saw_epoch_ = false;                     // it is over
};

}  // namespace muster::train
