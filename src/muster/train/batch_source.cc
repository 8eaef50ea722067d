#include "muster/train/batch_source.h"

#include <utility>

namespace muster::train {
namespace {

class RowsSource : public BatchSource {
 public:
  RowsSource(const formats::Schema& schema, NextRows next, bool with_labels,
             std::unique_ptr<features::FeatureTransform> transform)
      : next_(std::move(next)),
        with_labels_(with_labels),
        transform_(std::move(transform)),
        rows_(schema) {}

  absl::StatusOr<const InputBatch*> Next() override {
    rows_.Clear();
    MUSTER_ASSIGN_OR_RETURN(const bool more, next_(&rows_));
    if (!more) return nullptr;
    int bad_row = -1;
    MUSTER_RETURN_IF_ERROR(transform_->Apply(rows_, with_labels_, &batch_.features, &bad_row));
    return &batch_;
  }

 private:
  const NextRows next_;
  const bool with_labels_;
  const std::unique_ptr<features::FeatureTransform> transform_;
  formats::Columns rows_;
  InputBatch batch_;
};

class BatchesSource : public BatchSource {
 public:
  BatchesSource(std::shared_ptr<const std::vector<features::FeatureBatch>> batches, int64_t epochs)
      : batches_(std::move(batches)), epochs_(epochs) {}

  absl::StatusOr<const InputBatch*> Next() override {
    if (next_ == batches_->size()) {
      next_ = 0;
      ++batch_.epoch;
    }
    if (batches_->empty() || (epochs_ > 0 && batch_.epoch >= epochs_)) return nullptr;
    batch_.features = (*batches_)[next_++];
    return &batch_;
  }
  int64_t steps() const override { return static_cast<int64_t>(batches_->size()) * epochs_; }
  int64_t epochs() const override { return epochs_; }

 private:
  const std::shared_ptr<const std::vector<features::FeatureBatch>> batches_;
  const int64_t epochs_;
  size_t next_ = 0;
  InputBatch batch_;
};

}  // namespace

InputFn RowsInput(OpenRows open, bool with_labels) {
  return [open = std::move(open), with_labels](
             io::FileSystem&, const model::Model& model,
             const data::Position*) -> absl::StatusOr<std::unique_ptr<BatchSource>> {
    MUSTER_ASSIGN_OR_RETURN(model::RowTransform rows,
                            model::NewRowTransform(model, with_labels, /*with_key=*/false));
    MUSTER_ASSIGN_OR_RETURN(NextRows next, open(rows.used.schema));
    return std::make_unique<RowsSource>(rows.used.schema, std::move(next), with_labels,
                                        std::move(rows.transform));
  };
}

InputFn BatchesInput(std::vector<features::FeatureBatch> batches, int64_t epochs) {
  return [shared = std::make_shared<const std::vector<features::FeatureBatch>>(std::move(batches)),
          epochs](io::FileSystem&, const model::Model&,
                  const data::Position*) -> absl::StatusOr<std::unique_ptr<BatchSource>> {
    return std::make_unique<BatchesSource>(shared, epochs);
  };
}

}  // namespace muster::train
