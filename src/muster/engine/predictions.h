// Predictor: the results for a batch: the outputs of an exported model; or what a head computes
// from logits, with the names and shapes that tf.estimator's head of the same kind gives them
// (engine/heads/, in the file of the head).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/engine/engine.h"
#include "muster/engine/heads/head_spec.h"
#include "muster/engine/heads/prediction_filler.h"
#include "muster/formats/bundle.h"
#include "muster/formats/schema.h"

namespace muster::engine {

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

}  // namespace muster::engine
