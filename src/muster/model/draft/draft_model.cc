#include "muster/model/draft/draft_model.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

#include "muster/base/strings.h"
#include "muster/model/draft/yaml_text.h"

namespace muster::model {
namespace {

constexpr int kTowerDimension = 16;
constexpr double kDraftDropout = 0.2;
constexpr char kAdagrad[] = "    optimizer: {adagrad: {learning_rate: 0.05}}\n";

std::string Columns(const std::vector<std::string>& names) {
  return StrCat("    columns: ", YamlList(names, 13, 14), "\n");
}

// Steps of Adagrad and FTRL have the size of the learning rate, whatever that of the label is.
double LabelScale(const Draft& draft) {
  const data::NumberSums& label = draft.label.profile->numbers;
  constexpr double kMeanInSteps = 20;
  return std::max(label.stddev(), std::fabs(label.mean) / kMeanInSteps);
}

// What makes FTRL's sum over all steps of a training, gradients and l2 |w|^2, that of logistic
// regression with a ridge of |w|^2 / 2 over all rows.
double Ridge(const Draft& draft) {
  constexpr double kHalf = 0.5;
  return kHalf * static_cast<double>(draft.epochs) / draft.batch_size;
}

std::string WriteLinear(const Draft& draft, const std::vector<std::string>& columns) {
  const std::string part = StrCat("  linear:\n", Columns(columns));
  if (draft.label.task == DraftLabel::Task::kRegression) {
    constexpr double kRate = 0.2;
    return StrCat(
        part, "    # A share of the label's deviation: a label in other units needs another.\n",
        "    optimizer: {adagrad: {learning_rate: ", YamlNumber(kRate * LabelScale(draft)), "}}\n");
  }
  return StrCat(part, "    # l2 keeps the weights of rare words small.\n",
                "    optimizer: {ftrl: {learning_rate: 0.1, l2: ", YamlNumber(Ridge(draft)),
                "}}\n");
}

std::string WriteDeep(std::string_view name, const std::vector<std::string>& columns) {
  return StrCat("  ", name, ":\n", Columns(columns), "    hidden_units: [64, 32]\n", kAdagrad);
}

}  // namespace

std::string WriteDraftModel(const Draft& draft, const DraftParts& parts) {
  const DraftType& type = *draft.type;
  std::string text = StrCat("\nmodel:\n  type: ", type.name, "\n");
  if (type.linear) text += WriteLinear(draft, parts.linear);
  if (type.fm) text += StrCat("  fm:\n", Columns(parts.dense), kAdagrad);
  if (type.cross) text += "  cross: {layers: 2}\n";
  if (type.dnn) {
    text += WriteDeep("dnn", parts.dense);
    text += StrCat("    # It keeps the network from learning the rows by heart.\n    dropout: ",
                   YamlNumber(kDraftDropout), "\n");
  }
  if (!type.towers) return text;
  return StrCat(text, WriteDeep("query", parts.query), WriteDeep("item", parts.item),
                "  # Of the vectors, whose inner product is the score of a pair.\n",
                "  dimension: ", kTowerDimension, "\n");
}

}  // namespace muster::model
