#include "muster/engine/predictions.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "muster/formats/number_type.h"

namespace muster::engine {
namespace {

using formats::ValueType;

constexpr size_t kMostTensors = 7;  // of a head

// Gives *out's tensors one after another, so that their memory is used again. What it gave stays
// where it is while the filler lives.
class TensorFiller {
 public:
  explicit TensorFiller(Predictions* out) : out_(*out) { out_.tensors.reserve(kMostTensors); }
  // Whatever was there before of another head goes.
  ~TensorFiller() { out_.tensors.resize(next_); }
  TensorFiller(const TensorFiller&) = delete;
  TensorFiller& operator=(const TensorFiller&) = delete;

  std::vector<float>& Floats(std::string_view name, int width) {
    return Next(name, ValueType::kFloat, width, false).floats;
  }
  std::vector<int64_t>& Ints(std::string_view name, int width, bool same_in_all_rows = false) {
    return Next(name, ValueType::kInt, width, same_in_all_rows).ints;
  }
  std::vector<std::string_view>& Strings(std::string_view name, int width,
                                         bool same_in_all_rows = false) {
    return Next(name, ValueType::kString, width, same_in_all_rows).strings;
  }

 private:
  PredictionTensor& Next(std::string_view name, ValueType type, int width, bool same) {
    if (next_ == out_.tensors.size()) out_.tensors.emplace_back();
    PredictionTensor& tensor = out_.tensors[next_++];
    tensor.name = name;
    tensor.type = type;
    tensor.width = width;
    tensor.same_in_all_rows = same;
    const size_t size = static_cast<size_t>(same ? 1 : out_.rows) * static_cast<size_t>(width);
    tensor.floats.resize(type == ValueType::kFloat ? size : 0);
    tensor.ints.resize(type == ValueType::kInt ? size : 0);
    tensor.strings.resize(type == ValueType::kString ? size : 0);
    return tensor;
  }

  Predictions& out_;
  size_t next_ = 0;
};

void AddAllClasses(const std::vector<std::string>& names, TensorFiller* filler) {
  const int classes = static_cast<int>(names.size());
  std::vector<int64_t>& ids = filler->Ints("all_class_ids", classes, /*same_in_all_rows=*/true);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i);
  std::ranges::copy(names, filler->Strings("all_classes", classes, true).begin());
}

void AddClasses(std::span<const int64_t> ids, const std::vector<std::string>& names,
                TensorFiller* filler) {
  std::vector<std::string_view>& classes = filler->Strings("classes", 1);
  for (size_t i = 0; i < ids.size(); ++i) classes[i] = names[static_cast<size_t>(ids[i])];
}

void PredictBinary(std::span<const float> logits, const std::vector<std::string>& names,
                   TensorFiller* filler) {
  std::ranges::copy(logits, filler->Floats("logits", 1).begin());
  std::vector<float>& logistic = filler->Floats("logistic", 1);
  std::ranges::transform(logits, logistic.begin(), Sigmoid);
  std::vector<float>& probabilities = filler->Floats("probabilities", 2);
  for (size_t i = 0; i < logits.size(); ++i) {
    probabilities[2 * i] = 1.0f - logistic[i];
    probabilities[2 * i + 1] = logistic[i];
  }
  std::vector<int64_t>& ids = filler->Ints("class_ids", 1);
  std::ranges::transform(logits, ids.begin(), [](float logit) { return logit > 0 ? 1 : 0; });
  AddClasses(ids, names, filler);
  AddAllClasses(names, filler);
}

void PredictMultiClass(std::span<const float> logits, const std::vector<std::string>& names,
                       TensorFiller* filler) {
  const size_t width = names.size(), rows = logits.size() / width;
  std::ranges::copy(logits, filler->Floats("logits", static_cast<int>(width)).begin());
  std::vector<float>& probabilities = filler->Floats("probabilities", static_cast<int>(width));
  for (size_t row = 0; row < rows; ++row) {
    Softmax(logits.subspan(row * width, width),
            std::span(probabilities).subspan(row * width, width));
  }
  std::vector<int64_t> ids(rows);
  for (size_t row = 0; row < rows; ++row)
    ids[row] = LargestLogit(logits.subspan(row * width, width));
  std::ranges::copy(ids, filler->Ints("class_ids", 1).begin());
  AddClasses(ids, names, filler);
  AddAllClasses(names, filler);
}

void PredictMultiLabel(std::span<const float> logits, const std::vector<std::string>& names,
                       TensorFiller* filler) {
  const int width = static_cast<int>(names.size());
  std::ranges::copy(logits, filler->Floats("logits", width).begin());
  std::ranges::transform(logits, filler->Floats("probabilities", width).begin(), Sigmoid);
  std::ranges::copy(names, filler->Strings("classes", width, /*same_in_all_rows=*/true).begin());
}

void PredictRegression(std::span<const float> logits, const HeadSpec& head, TensorFiller* filler) {
  const int width = head.label_dimension;
  std::ranges::transform(logits, filler->Floats("predictions", width).begin(),
                         [&](float logit) { return InverseLink(head.loss, logit); });
  if (head.loss == RegressionLoss::kMeanSquared) return;
  std::ranges::copy(logits, filler->Floats("logits", width).begin());
}

template <class From, class To>
void ReadNumbers(std::span<const std::byte> bytes, std::vector<To>* to) {
  to->resize(bytes.size() / sizeof(From));
  for (size_t i = 0; i < to->size(); ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    (*to)[i] = static_cast<To>(+value);  // an int8 is a number here, no character
  }
}

absl::Status ReadTensor(const features::RawColumn& column, int rows, PredictionTensor* tensor) {
  const auto width = formats::ElementCount(column.shape);
  if (!width || !std::in_range<int>(*width) || (tensor->width > 0 && tensor->width != *width)) {
    return absl::DataLossError(StrCat("prediction ", tensor->name, " is not of the shape that the ",
                                      "export says: export the model again"));
  }
  tensor->width = static_cast<int>(*width);
  const bool numbers = formats::VisitNumber(column.type, [&]<class From>(std::type_identity<From>) {
    if constexpr (std::is_floating_point_v<From>) {
      ReadNumbers<From>(column.bytes, &tensor->floats);
    } else {
      ReadNumbers<From>(column.bytes, &tensor->ints);
    }
  });
  for (size_t i = 0; !numbers && i + 1 < column.offsets.size(); ++i) {
    tensor->strings.emplace_back(
        reinterpret_cast<const char*>(column.bytes.data()) + column.offsets[i],
        column.offsets[i + 1] - column.offsets[i]);
  }
  const size_t have = tensor->floats.size() + tensor->ints.size() + tensor->strings.size();
  if (have == static_cast<size_t>(rows) * static_cast<size_t>(tensor->width)) {
    return absl::OkStatus();
  }
  return absl::DataLossError(StrCat("prediction ", tensor->name, " has ", have, " values for ",
                                    rows, " rows of ", tensor->width));
}

}  // namespace

absl::StatusOr<formats::ValueType> PredictionType(formats::DataType type) {
  if (type == formats::DataType::kString) return formats::ValueType::kString;
  auto value = formats::ValueType::kInt;
  const bool numbers = formats::VisitNumber(type, [&]<class Number>(std::type_identity<Number>) {
    if (std::is_floating_point_v<Number>) value = formats::ValueType::kFloat;
  });
  if (numbers) return value;
  return absl::InvalidArgumentError(
      StrCat(formats::DataTypeName(type),
             " cannot be written as a prediction: cast it to float32 in the model's last layer"));
}

float Sigmoid(float logit) { return 1.0f / (1.0f + std::exp(-logit)); }

void Softmax(std::span<const float> logits, std::span<float> probabilities) {
  const float largest = *std::ranges::max_element(logits);
  float sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    probabilities[i] = std::exp(logits[i] - largest);
    sum += probabilities[i];
  }
  for (float& p : probabilities) p /= sum;
}

int LargestLogit(std::span<const float> logits) {
  return static_cast<int>(std::ranges::max_element(logits) - logits.begin());
}

float InverseLink(RegressionLoss loss, float logit) {
  switch (loss) {
    case RegressionLoss::kMeanSquared:
      return logit;
    case RegressionLoss::kPoisson:
    case RegressionLoss::kLogNormal:
      return std::exp(logit);
    case RegressionLoss::kLogistic:
      break;
  }
  return Sigmoid(logit);
}

const PredictionTensor* Predictions::Find(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &PredictionTensor::name);
  return found == tensors.end() ? nullptr : &*found;
}

Predictor::Predictor(std::vector<PredictionTensor> tensors) : tensors_(std::move(tensors)) {}

Predictor::Predictor(const HeadSpec& head, std::vector<std::string> class_names)
    : head_(head), class_names_(std::move(class_names)) {
  if (!class_names_.empty() || head_.is_regression()) return;
  const int classes = head_.kind == HeadKind::kBinary ? 2 : head_.classes;
  for (int i = 0; i < classes; ++i) class_names_.push_back(StrCat(i));
}

absl::Status Predictor::Predict(const Forward& forward, int rows, Predictions* out) const {
  if (!tensors_) {
    Predict(forward.logits, out);
    return absl::OkStatus();
  }
  if (forward.predictions.size() != tensors_->size()) {
    return absl::DataLossError(StrCat("the model gave ", forward.predictions.size(),
                                      " predictions, its export says ", tensors_->size()));
  }
  out->rows = rows;
  out->tensors = *tensors_;
  for (size_t i = 0; i < tensors_->size(); ++i) {
    MUSTER_RETURN_IF_ERROR(ReadTensor(forward.predictions[i], rows, &out->tensors[i]));
  }
  return absl::OkStatus();
}

void Predictor::Predict(std::span<const float> logits, Predictions* out) const {
  if (tensors_) {
    *out = {.rows = 0, .tensors = *tensors_};
    return;
  }
  out->rows = static_cast<int>(logits.size()) / head_.logits_dimension();
  TensorFiller filler(out);
  switch (head_.kind) {
    case HeadKind::kBinary:
      return PredictBinary(logits, class_names_, &filler);
    case HeadKind::kMultiClass:
      return PredictMultiClass(logits, class_names_, &filler);
    case HeadKind::kMultiLabel:
      return PredictMultiLabel(logits, class_names_, &filler);
    case HeadKind::kRegression:
      return PredictRegression(logits, head_, &filler);
  }
}

}  // namespace muster::engine
