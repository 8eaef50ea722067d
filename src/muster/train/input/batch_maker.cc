#include "muster/train/input/batch_maker.h"

#include "muster/base/strings.h"

namespace muster::train {

BatchMaker::BatchMaker(const model::Model& model, model::RowTransform rows, bool with_labels,
                       ClassWeights class_weights)
    : head_(model.spec.head),
      request_(model.request),
      used_(std::move(rows.used)),
      transform_(std::move(rows.transform)),
      with_labels_(with_labels),
      class_weights_(std::move(class_weights)) {
  if (with_labels && !class_weights_.empty()) classes_ = model.spec;
}

absl::StatusOr<bool> BatchMaker::Make(data::BatchReader& reader, formats::Columns* columns,
                                      features::FeatureBatch* batch) const {
  while (true) {
    int bad_row = -1;
    absl::Status status = transform_->Apply(*columns, with_labels_, batch, &bad_row);
    if (status.ok() && with_labels_) status = CheckLabels(*batch, &bad_row);
    if (status.ok()) return true;
    if (bad_row < 0) return status;
    MUSTER_RETURN_IF_ERROR(reader.RejectRow(bad_row, status, columns));
    MUSTER_ASSIGN_OR_RETURN(const bool is_batch, reader.Refill(columns));
    if (!is_batch) return false;
  }
}

void BatchMaker::AddClassWeights(features::FeatureBatch* batch) const {
  if (classes_) ApplyClassWeights(*classes_, class_weights_, batch);
}

absl::Status BatchMaker::CheckLabels(const features::FeatureBatch& batch, int* bad_row) const {
  std::string why;
  *bad_row = engine::FindBadLabel(head_, batch.labels, &why);
  if (*bad_row < 0) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("label '", used_.label.input, "': ", why));
}

}  // namespace muster::train
