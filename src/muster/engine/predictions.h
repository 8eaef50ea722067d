// Predictions: the outputs of an exported model; or the results that a head computes from logits,
// with the names and shapes that tf.estimator's head of the same kind gives them. rows x width
// each:
//   binary       logits 1, logistic 1, probabilities 2, class_ids 1, classes 1, all_class_ids 2,
//                all_classes 2; class 1 when the logit is above 0
//   multi-class  logits n, probabilities n (softmax), class_ids 1 (the first largest logit),
//                classes 1, all_class_ids n, all_classes n
//   multi-label  logits n, probabilities n (sigmoids), classes n (every name, as TensorFlow has it)
//   regression   predictions n: the logits; or, beside logits n, exp(logits) for Poisson and
//                log-normal, the sigmoids for logistic
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/engine/engine.h"
#include "muster/engine/head_spec.h"
#include "muster/formats/bundle.h"
#include "muster/formats/schema.h"

namespace muster::engine {

struct PredictionTensor {
  std::string name;
  formats::ValueType type = formats::ValueType::kFloat;
  int width = 1;                  // 0, without rows: any width
  bool same_in_all_rows = false;  // then it holds one row
  // Only the vector that `type` names is used.
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;  // into the Predictor, or into the Forward

  // The index of a row's first value.
  size_t begin(int row) const {
    return same_in_all_rows ? 0 : static_cast<size_t>(row) * static_cast<size_t>(width);
  }
};

struct Predictions {
  int rows = 0;
  std::vector<PredictionTensor> tensors;

  // Null when the head has none of this name.
  const PredictionTensor* Find(std::string_view name) const;
};

// Immutable, thread-safe; outlives the Predictions that it made.
class Predictor {
 public:
  // `class_names`: the label's words in order; empty: "0", "1", ... . `head` is valid.
  Predictor(const HeadSpec& head, std::vector<std::string> class_names);
  // For an exported model with these predictions (tensors without rows): no head and no classes.
  explicit Predictor(std::vector<PredictionTensor> tensors);

  // Replaces *out, which may be reused. `logits` is rows x head.logits_dimension(). Without logits
  // *out has the tensors' names, types and widths.
  void Predict(std::span<const float> logits, Predictions* out) const;
  // From the engine's results for `rows` rows. DATA_LOSS if an exported model gave other tensors.
  absl::Status Predict(const Forward& forward, int rows, Predictions* out) const;

  const HeadSpec& head() const { return head_; }
  const std::vector<std::string>& class_names() const { return class_names_; }

 private:
  HeadSpec head_;
  std::vector<std::string> class_names_;
  std::optional<std::vector<PredictionTensor>> tensors_;  // of an exported model
};

// The type as which an exported model's tensor of that type is read. INVALID_ARGUMENT unless `type`
// is float32, float64, an integer type, bool or string.
absl::StatusOr<formats::ValueType> PredictionType(formats::DataType type);

// As the binary and multi-label heads compute it.
float Sigmoid(float logit);
// probabilities[i] = exp(logits[i]) / sum over exp(logits), without overflow.
void Softmax(std::span<const float> logits, std::span<float> probabilities);
// The index of the first largest logit.
int LargestLogit(std::span<const float> logits);
// The prediction of a regression head for a logit.
float InverseLink(RegressionLoss loss, float logit);

}  // namespace muster::engine
