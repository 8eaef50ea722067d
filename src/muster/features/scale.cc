#include "muster/features/scale.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

#include "muster/features/column_type.h"
#include "muster/formats/yaml_emitter.h"

namespace muster::features {

std::string PrintColumn(const ColumnSpec& column) {
  YAML::Emitter out;
  out << YAML::Flow << YAML::BeginMap;
  GetColumnType(column.kind).Print(column, out);
  out << YAML::EndMap;
  return StrCat(column.name, ": ", out.c_str());
}

ScaleWatch::ScaleWatch(const FeatureSpec& spec, const FeatureRequest& request,
                       const std::vector<std::string>& exempt) {
  for (size_t i = 0; i < request.dense.size(); ++i) {
    const ColumnSpec* const column = spec.Find(request.dense[i]);
    const bool is_number = column != nullptr && (column->kind == ColumnKind::kNumeric ||
                                                 column->kind == ColumnKind::kSequenceNumeric);
    if (!is_number || column->normalize) continue;
    if (std::ranges::find(exempt, column->name) != exempt.end()) continue;
    watched_.push_back({.place = i, .column = *column});
  }
}

void ScaleWatch::Add(const FeatureBatch& batch) {
  if (done_) return;
  rows_ += static_cast<uint64_t>(batch.rows);
  for (Watched& watched : watched_) {
    const DenseColumn& dense = batch.dense[watched.place];
    // In each row the number is followed by the flag for a missing value.
    const size_t step = watched.column.missing_flag ? 2 : 1;
    for (size_t i = 0; i < dense.values.size(); i += step) {
      const double value = dense.values[i];
      watched.squares += value * value;
      watched.largest = std::max(watched.largest, std::abs(value));
      ++watched.count;
    }
  }
}

std::vector<std::string> ScaleWatch::ConsumeWarnings(bool ended) {
  std::vector<std::string> warnings;
  if (done_ || rows_ == 0 || (rows_ < kRows && !ended)) return warnings;
  done_ = true;
  for (const Watched& watched : watched_) {
    const double scale = std::sqrt(watched.squares / std::max(watched.count, 1.0));
    if (!(scale > kLargest)) continue;
    ColumnSpec better = watched.column;
    better.normalize = better.to_measure = true;
    warnings.push_back(absl::StrFormat(
        "column '%s' reaches the model with values up to %.6g (root mean square %.3g in the first "
        "%d rows), which slows or spoils its training; write in the model file: %s",
        watched.column.name, watched.largest, scale, rows_, PrintColumn(better)));
  }
  return warnings;
}

}  // namespace muster::features
