#include "muster/engine/predictions.h"

#include <cstring>
#include <utility>

#include "muster/engine/heads/head_kind.h"
#include "muster/formats/number_type.h"

namespace muster::engine {
namespace {

template <class From, class To>
void ReadNumbers(std::span<const std::byte> bytes, std::vector<To>* to) {
  to->resize(bytes.size() / sizeof(From));
  for (size_t i = 0; i < to->size(); ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    (*to)[i] = static_cast<To>(+value);  // int8 is printed as a number, not as a character
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
  return absl::DataLossError(StrCat("prediction ", tensor->name, " has ", have, " values, not ",
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

Predictor::Predictor(std::vector<PredictionTensor> tensors) : tensors_(std::move(tensors)) {}

Predictor::Predictor(const HeadSpec& head, std::vector<std::string> class_names)
    : head_(head), class_names_(std::move(class_names)) {
  if (!class_names_.empty()) return;
  for (int i = 0; i < head_.class_count(); ++i) class_names_.push_back(StrCat(i));
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
  PredictionFiller filler(out);
  GetHeadKind(head_).Predict(head_, logits, class_names_, &filler);
}

}  // namespace muster::engine
