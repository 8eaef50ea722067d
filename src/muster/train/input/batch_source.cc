#include "muster/train/input/batch_source.h"

#include <utility>

#include "muster/features/coverage.h"
#include "muster/formats/missing.h"

namespace muster::train {
namespace {

class RowsSource : public BatchSource {
 public:
  RowsSource(model::RowTransform rows, NextRows next, bool with_labels)
      : next_(std::move(next)),
        with_labels_(with_labels),
        transform_(std::move(rows.transform)),
        schema_(rows.used.schema),
        missing_(formats::GetMissingValues(schema_)),
        coverage_(rows.used),
        rows_(rows.used.schema) {}

  absl::StatusOr<const InputBatch*> Next() override {
    rows_.Clear();
    MUSTER_ASSIGN_OR_RETURN(const bool more, next_(&rows_));
    ended_ = !more;
    if (!more) return nullptr;
    for (size_t i = 0; i < missing_.size(); ++i) {
      MUSTER_RETURN_IF_ERROR(
          missing_[i].ReplaceRows(schema_.fields[i], static_cast<int>(i), 0, rows_.rows(), &rows_));
    }
    int bad_row = -1;
    const absl::Status status = transform_->Apply(rows_, with_labels_, &batch_.features, &bad_row);
    if (!status.ok()) {
      return bad_row < 0 ? status : Annotate(status, StrCat("row ", bad_row, " of the batch"));
    }
    coverage_.Add(rows_);
    return &batch_;
  }
  std::vector<std::string> ConsumeWarnings() override { return coverage_.ConsumeWarnings(ended_); }

 private:
  const NextRows next_;
  const bool with_labels_;
  const std::unique_ptr<features::FeatureTransform> transform_;
  const formats::Schema schema_;
  const std::vector<formats::MissingValues> missing_;  // by field
  features::CoverageWatch coverage_;
  formats::Columns rows_;
  bool ended_ = false;
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
    return std::make_unique<RowsSource>(std::move(rows), std::move(next), with_labels);
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
