// BatchMaker: turns rows as they were read into batches, and leaves out rows that do not fit.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/reader.h"
#include "muster/features/transform.h"
#include "muster/model/model.h"
#include "muster/train/input/class_weights.h"

namespace muster::train {

// One owner thread.
class BatchMaker {
 public:
  // `rows` are those of the model, with their transform.
  BatchMaker(const model::Model& model, model::RowTransform rows, bool with_labels,
             ClassWeights class_weights);

  // Makes a batch of *columns, which `reader` has read. Rows that do not fit are left out and
  // replaced by the reader's next ones, as far as its max_bad_records allows. Returns false if no
  // row is left for a batch.
  absl::StatusOr<bool> Make(data::BatchReader& reader, formats::Columns* columns,
                            features::FeatureBatch* batch) const;
  // The weights that rows have by their class, if any.
  void AddClassWeights(features::FeatureBatch* batch) const;

  const features::FeatureSpec& used() const { return used_; }
  const features::FeatureRequest& request() const { return request_; }
  const features::FeatureTransform& transform() const { return *transform_; }
  bool with_labels() const { return with_labels_; }

 private:
  absl::Status CheckLabels(const features::FeatureBatch& batch, int* bad_row) const;

  const engine::HeadSpec head_;
  const features::FeatureRequest request_;
  const features::FeatureSpec used_;
  const std::unique_ptr<features::FeatureTransform> transform_;
  const bool with_labels_;
  const ClassWeights class_weights_;
  std::optional<model::ModelSpec> classes_;  // whose classes have weights
};

}  // namespace muster::train
