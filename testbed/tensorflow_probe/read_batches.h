// Batches of an exported model from a tensor bundle.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "muster/engine/tensorflow/keras_export.h"
#include "muster/features/batch.h"
#include "muster/formats/bundle.h"

namespace muster::testbed {

inline absl::StatusOr<features::RawColumn> ReadColumn(const formats::BundleReader& bundle,
                                                      const std::string& name) {
  const auto found = bundle.tensors().find(name);
  if (found == bundle.tensors().end()) return absl::NotFoundError(name);
  features::RawColumn column{.type = found->second.type};
  column.shape.assign(found->second.shape.begin() + 1, found->second.shape.end());
  if (column.type == formats::DataType::kString) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> texts, bundle.ReadStrings(name));
    column.offsets.push_back(0);
    for (const std::string& text : texts) {
      const auto* const from = reinterpret_cast<const std::byte*>(text.data());
      column.bytes.insert(column.bytes.end(), from, from + text.size());
      column.offsets.push_back(column.bytes.size());
    }
    return column;
  }
  column.bytes.resize(found->second.bytes);
  MUSTER_RETURN_IF_ERROR(
      bundle.Read(name, {reinterpret_cast<char*>(column.bytes.data()), column.bytes.size()}));
  return column;
}

// Batches batch/0, batch/1...: input/NAME, label/NAME, sample_weight.
inline absl::StatusOr<std::vector<features::FeatureBatch>> ReadBatches(
    const formats::BundleReader& bundle, const engine::tensorflow::KerasExport& model) {
  std::vector<features::FeatureBatch> batches;
  for (int n = 0;; ++n) {
    features::FeatureBatch batch;
    std::vector<std::string> names;
    for (const auto& input : model.inputs) names.push_back(StrCat("input/", input.name));
    for (const auto& label : model.labels) names.push_back(StrCat("label/", label.name));
    if (model.sample_weight) names.emplace_back("sample_weight");
    const auto first = bundle.tensors().find(StrCat("batch/", n, "/", names[0]));
    if (first == bundle.tensors().end()) return batches;
    batch.rows = static_cast<int>(first->second.shape[0]);
    for (const std::string& name : names) {
      MUSTER_ASSIGN_OR_RETURN(features::RawColumn column,
                              ReadColumn(bundle, StrCat("batch/", n, "/", name)));
      batch.raw.push_back(std::move(column));
    }
    batches.push_back(std::move(batch));
  }
}

}  // namespace muster::testbed
