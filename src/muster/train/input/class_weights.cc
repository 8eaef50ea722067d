#include "muster/train/input/class_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

#include "muster/formats/number_type.h"

namespace muster::train {
namespace {

using engine::tensorflow::KerasColumn;
using engine::tensorflow::KerasExport;
using engine::tensorflow::KerasPort;

bool StepTakesWeights(const KerasExport& model) {
  const auto* const step = model.Find("step");
  return step != nullptr && std::ranges::any_of(step->inputs, [](const KerasPort& port) {
           return port.role == KerasPort::Role::kSampleWeight;
         });
}

absl::Status CheckExported(const KerasExport& model) {
  const bool one_class = model.labels.size() == 1 && model.labels[0].shape.size() <= 1 &&
                         formats::VisitNumber(model.labels[0].type, [](auto) {}) &&
                         !std::ranges::count(model.labels[0].shape, features::kAnySize);
  if (!one_class) {
    return absl::InvalidArgumentError(
        "class weights need a model with a single label that is a class");
  }
  const bool sound = !model.sample_weight || model.sample_weight->type == formats::DataType::kFloat;
  if (StepTakesWeights(model) && sound) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the exported model's loss takes no weights of rows of float32: export it again, with this "
      "version or with sample_weight='weight' and that column in the data");
}

// The number of classes that the head's labels have; 0: the labels are not classes.
int CountClasses(const engine::HeadSpec& head) {
  if (head.kind == "binary") return 2;
  return head.kind == "multi_class" ? head.classes : 0;
}

absl::StatusOr<int64_t> ParseClass(const std::string& text, const model::ModelSpec& model) {
  const std::vector<std::string>& words = model.features.label.words;
  if (!model.exported && !words.empty()) {
    const auto found = std::ranges::find(words, text);
    if (found != words.end()) return found - words.begin();
    return absl::InvalidArgumentError(
        StrCat("'", text, "' is not one of the label's classes, such as '", words[0], "'"));
  }
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < 0) {
    return absl::InvalidArgumentError(StrCat("'", text, "' is not the number of a class"));
  }
  if (!model.exported && number >= CountClasses(model.head)) {
    return absl::InvalidArgumentError(
        StrCat("there is no class ", number, ": the model has ", CountClasses(model.head)));
  }
  return number;
}

float GetWeight(const ClassWeights& weights, int64_t number) {
  const auto found = weights.find(number);
  return found == weights.end() ? 1 : found->second;
}

int64_t GetClass(const features::RawColumn& label, size_t row, size_t width) {
  int64_t found = 0;
  formats::VisitNumber(label.type, [&](auto type) {
    using Number = typename decltype(type)::type;
    std::vector<Number> values(width);
    std::memcpy(values.data(), label.bytes.data() + row * width * sizeof(Number),
                width * sizeof(Number));
    found = width == 1 ? std::llround(static_cast<double>(values[0]))
                       : std::ranges::max_element(values) - values.begin();
  });
  return found;
}

void ApplyToExported(const KerasExport& model, const ClassWeights& weights,
                     features::FeatureBatch* batch) {
  const auto rows = static_cast<size_t>(batch->rows);
  const features::RawColumn& label = batch->raw[model.inputs.size()];
  const size_t width = label.shape.empty() ? 1 : static_cast<size_t>(label.shape[0]);
  batch->weights.resize(rows);
  for (size_t row = 0; row < rows; ++row) {
    batch->weights[row] = GetWeight(weights, GetClass(label, row, width));
  }
  if (!model.sample_weight) return;
  // A row has one weight or, as a sequence, several.
  features::RawColumn& own = batch->raw.back();
  const size_t count = own.bytes.size() / sizeof(float) / std::max<size_t>(rows, 1);
  for (size_t i = 0; i < rows * count; ++i) {
    float value = 0;
    std::memcpy(&value, own.bytes.data() + i * sizeof value, sizeof value);
    value *= batch->weights[i / count];
    std::memcpy(own.bytes.data() + i * sizeof value, &value, sizeof value);
  }
  batch->weights.clear();
}

}  // namespace

absl::StatusOr<ClassWeights> ParseClassWeights(const std::string& text,
                                               const model::ModelSpec& model) {
  if (model.exported) MUSTER_RETURN_IF_ERROR(CheckExported(*model.exported));
  if (!model.exported && CountClasses(model.head) == 0) {
    return absl::InvalidArgumentError(
        StrCat("the model's head is ", model.head.kind, ", whose labels are not classes"));
  }
  ClassWeights weights;
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  for (const std::string& part : parts) {
    const size_t equals = part.rfind('=');
    float weight = 0;
    if (equals == std::string::npos || !absl::SimpleAtof(part.substr(equals + 1), &weight) ||
        !std::isfinite(weight) || weight < 0) {
      return absl::InvalidArgumentError(
          StrCat("'", part, "' is not CLASS=WEIGHT with a weight of 0 or more, such as 1=4"));
    }
    MUSTER_ASSIGN_OR_RETURN(const int64_t number, ParseClass(part.substr(0, equals), model));
    if (!weights.emplace(number, weight).second) {
      return absl::InvalidArgumentError(
          StrCat("class '", part.substr(0, equals), "' has two weights"));
    }
  }
  return weights;
}

void ApplyClassWeights(const model::ModelSpec& model, const ClassWeights& weights,
                       features::FeatureBatch* batch) {
  if (model.exported) return ApplyToExported(*model.exported, weights, batch);
  const auto rows = static_cast<size_t>(batch->rows);
  if (batch->weights.empty()) batch->weights.assign(rows, 1);
  for (size_t row = 0; row < rows; ++row) {
    batch->weights[row] *= GetWeight(weights, std::lround(batch->labels[row]));
  }
}

}  // namespace muster::train
