#include "muster/model/keras/exported_columns.h"

#include <utility>

namespace muster::model {

using engine::tensorflow::KerasColumn;
using engine::tensorflow::KerasExport;

features::RawColumnSpecs GetRawColumns(const KerasExport& model) {
  features::RawColumnSpecs columns = {
      .inputs = model.inputs, .labels = model.labels, .key = model.key};
  if (model.sample_weight) columns.labels.push_back(*model.sample_weight);
  return columns;
}

absl::StatusOr<std::vector<engine::PredictionTensor>> GetPredictions(const KerasExport& model) {
  std::vector<engine::PredictionTensor> tensors;
  for (const KerasColumn& column : model.predictions) {
    engine::PredictionTensor& tensor = tensors.emplace_back();
    tensor.name = column.name;
    const auto width = formats::ElementCount(column.shape);
    // A width of 0 means any length: the one that a batch has.
    tensor.width = width && std::in_range<int>(*width) ? static_cast<int>(*width) : 0;
    auto type = engine::PredictionType(column.type);
    if (!type.ok()) return Annotate(type.status(), StrCat("prediction ", column.name));
    tensor.type = *type;
  }
  return tensors;
}

}  // namespace muster::model
