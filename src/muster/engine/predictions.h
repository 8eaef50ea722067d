// Predictor: computes the results for a batch. For an exported model these are its outputs; for
// other models a head computes them from logits, with the names and shapes that tf.estimator's head
// of the same kind gives them (each in the file of its head in engine/heads/).
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

// Immutable, thread-safe. Must outlive the Predictions that it made.
class Predictor {
 public:
  // `class_names` are the label's words in order; if empty, "0", "1", ... are used. `head` is
  // valid.
  Predictor(const HeadSpec& head, std::vector<std::string> class_names);
  // For an exported model with these predictions (tensors without rows): it has no head and no
  // classes.
  explicit Predictor(std::vector<PredictionTensor> tensors);

  // Replaces *out, whose memory is reused. `logits` is rows x head.logits_dimension(). If `logits`
  // is empty, *out has the tensors' names, types and widths.
  void Predict(std::span<const float> logits, Predictions* out) const;
  // Uses the engine's results for `rows` rows. DATA_LOSS if an exported model gave other tensors.
  absl::Status Predict(const Forward& forward, int rows, Predictions* out) const;

  const HeadSpec& head() const { return head_; }
  const std::vector<std::string>& class_names() const { return class_names_; }

 private:
  HeadSpec head_;
  std::vector<std::string> class_names_;
  std::optional<std::vector<PredictionTensor>> tensors_;  // the outputs of an exported model
};

// Returns the type as which an exported model's tensor of type `type` is read. INVALID_ARGUMENT
// unless `type` is float32, float64, an integer type, bool or string.
absl::StatusOr<formats::ValueType> PredictionType(formats::DataType type);

}  // namespace muster::engine
