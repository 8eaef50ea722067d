#include "muster/train/learned_check.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "muster/features/scale.h"
#include "muster/train/input/usual_rates.h"

namespace muster::train {
namespace {

constexpr double kStandardErrors = 4;
constexpr double kShare = 0.25;
// The loss of a binary model that gives each row one half is ln 2, 0.69.
constexpr double kDivergedLoss = 3;

std::optional<double> Find(const std::vector<metrics::NamedValue>& metrics, std::string_view name) {
  const auto found = std::ranges::find(metrics, name, &metrics::NamedValue::first);
  if (found == metrics.end()) return std::nullopt;
  return found->second;
}

bool IsFarOff(double difference, double label_mean, std::optional<double> squared_error,
              double rows) {
  if (squared_error) {
    return difference * difference > kShare * *squared_error &&
           std::abs(difference) > kStandardErrors * std::sqrt(*squared_error / rows);
  }
  const double variance = std::max(0.0, label_mean * (1 - label_mean));
  return std::abs(difference) > kStandardErrors * std::sqrt(variance / rows) &&
         std::abs(difference) > kShare * std::min(label_mean, 1 - label_mean);
}

// Returns lines for numeric columns that reach the model unscaled.
std::vector<std::string> FindUnscaled(const model::ModelSpec& model) {
  const std::vector<std::string> used = model.UsedColumns();
  std::vector<std::string> lines;
  for (const features::ColumnSpec& column : model.features.columns) {
    const bool is_unscaled = column.kind == features::ColumnKind::kNumeric && !column.normalize &&
                             column.mean == 0 && column.stddev == 1 && !column.log1p;
    if (!is_unscaled || std::ranges::find(used, column.name) == used.end()) continue;
    features::ColumnSpec scaled = column;
    scaled.normalize = scaled.to_measure = true;
    lines.push_back(features::PrintColumn(scaled));
  }
  return lines;
}

// Whether a column reads an input of the data, other than by another column.
bool ReadsInput(const features::ColumnSpec& column, const std::string& input) {
  using features::ColumnKind;
  const bool is_of_column = column.kind == ColumnKind::kWeighted ||
                            column.kind == ColumnKind::kIndicator ||
                            column.kind == ColumnKind::kEmbedding;
  return (!is_of_column && column.input == input) ||
         std::ranges::find(column.keys, input) != column.keys.end();
}

}  // namespace

std::string DescribeLabelAsFeature(const model::ModelSpec& model) {
  const std::string& label = model.features.label.input;
  if (label.empty()) return "";
  for (const features::ColumnSpec& column : model.features.columns) {
    if (!ReadsInput(column, label)) continue;
    return StrCat("column '", column.name, "' reads the label '", label,
                  "': the model learns to repeat it; take the column out of the model file");
  }
  return "";
}

bool HasLearnedRule(const model::ModelSpec& model) {
  return !model.exported && (model.head.kind == "binary" || model.head.kind == "regression");
}

std::string DescribeUnlearned(const model::ModelSpec& model,
                              const std::vector<metrics::NamedValue>& metrics, double rows) {
  const auto label = Find(metrics, "label/mean"), prediction = Find(metrics, "prediction/mean");
  if (!HasLearnedRule(model) || !label || !prediction || rows < 1) return "";
  if (!std::isfinite(*prediction)) return "";  // the loss already shows it
  if (!IsFarOff(*prediction - *label, *label, Find(metrics, "mean_squared_error"), rows)) return "";
  const auto loss = Find(metrics, "average_loss");
  if (model.head.kind == "binary" && loss && *loss > kDivergedLoss) {
    return absl::StrFormat(
        "the loss is %.4g, and guessing one half gives 0.69: the training has diverged; lower the "
        "learning rate",
        *loss);
  }
  std::vector<std::string> advice;
  for (const std::string& line : FindUnscaled(model)) advice.push_back(StrCat(line, " in columns"));
  for (const std::string& line : DescribeSlowParts(model)) advice.push_back(line);
  return absl::StrFormat(
      "the mean of the predictions is %.4g and that of the labels %.4g (%.0f rows): the model has "
      "not learned yet; train longer (--epochs)%s%s",
      *prediction, *label, rows,
      advice.empty() ? "" : ", or write in the model file: ", absl::StrJoin(advice, "; "));
}

}  // namespace muster::train
