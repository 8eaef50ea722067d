#include "muster/engine/heads/prediction_filler.h"

#include <algorithm>
#include <cmath>

namespace muster::engine {

using formats::ValueType;

constexpr size_t kMostTensors = 7;  // the most that a head gives

PredictionFiller::PredictionFiller(Predictions* out) : out_(*out) {
  out_.tensors.reserve(kMostTensors);
}
PredictionFiller::~PredictionFiller() { out_.tensors.resize(next_); }

std::vector<float>& PredictionFiller::Floats(std::string_view name, int width) {
  return Next(name, ValueType::kFloat, width, false).floats;
}
std::vector<int64_t>& PredictionFiller::Ints(std::string_view name, int width,
                                             bool same_in_all_rows) {
  return Next(name, ValueType::kInt, width, same_in_all_rows).ints;
}
std::vector<std::string_view>& PredictionFiller::Strings(std::string_view name, int width,
                                                         bool same_in_all_rows) {
  return Next(name, ValueType::kString, width, same_in_all_rows).strings;
}

PredictionTensor& PredictionFiller::Next(std::string_view name, ValueType type, int width,
                                         bool same) {
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

void FillClasses(std::span<const int64_t> ids, const std::vector<std::string>& class_names,
                 PredictionFiller* filler) {
  std::vector<std::string_view>& classes = filler->Strings("classes", 1);
  for (size_t i = 0; i < ids.size(); ++i) classes[i] = class_names[static_cast<size_t>(ids[i])];
  const int count = static_cast<int>(class_names.size());
  std::vector<int64_t>& all = filler->Ints("all_class_ids", count, /*same_in_all_rows=*/true);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  std::ranges::copy(class_names, filler->Strings("all_classes", count, true).begin());
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

const PredictionTensor* Predictions::Find(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &PredictionTensor::name);
  return found == tensors.end() ? nullptr : &*found;
}

}  // namespace muster::engine
