// OptimizerKind: what the rest of the program knows about one optimizer, as data: its names, its
// parameters with their defaults and ranges, and how it is made. Each one stands in the file of its
// optimizer; the table of all is in optimizer.cc.
#pragma once

#include <cmath>
#include <memory>
#include <span>
#include <string_view>

#include "muster/base/status.h"
#include "muster/optim/optimizer.h"

namespace muster::optim {

// The range that a number must be in. All numbers must be finite.
enum class ValueRange { kPositive, kNotNegative, kNotPositive, kUpToOne, kBelowOne, kFlag };

inline bool IsIn(ValueRange range, double value) {
  switch (range) {
    case ValueRange::kPositive:
      return std::isfinite(value) && value > 0;
    case ValueRange::kNotNegative:
      return std::isfinite(value) && value >= 0;
    case ValueRange::kNotPositive:
      return std::isfinite(value) && value <= 0;
    case ValueRange::kUpToOne:
      return value >= 0 && value <= 1;
    case ValueRange::kBelowOne:
      return value >= 0 && value < 1;
    case ValueRange::kFlag:
      return value == 0 || value == 1;
  }
  return false;
}
std::string_view RangeText(ValueRange range);  // "over 0", "at least 0 and under 1"

struct OptimizerParameter {
  const char* name;        // in a model file
  const char* keras_name;  // the argument of Keras's class, in an exported model
  double fallback;
  ValueRange range;

  bool is_flag() const { return range == ValueRange::kFlag; }
};

struct OptimizerKind {
  std::string_view name;                            // in a model file
  std::span<const std::string_view> keras_classes;  // the first one names it in checkpoints
  double learning_rate;                             // Keras's default
  std::span<const OptimizerParameter> parameters;   // in the order in which they are printed
  bool decays;  // by TensorFlow's rule: takes weight_decay and lazy
  // Checks what the ranges do not cover; INVALID_ARGUMENT names a value. Null: nothing is left.
  absl::Status (*check)(const OptimizerSpec& spec);
  // Called only if all values of `spec` are in range.
  std::unique_ptr<Optimizer> (*make)(const OptimizerSpec& spec);
};

std::span<const OptimizerKind* const> OptimizerKinds();
// Null if there is none of that name, or for that class of Keras.
const OptimizerKind* FindKind(std::string_view name);
const OptimizerKind* FindKerasClass(std::string_view name);

// INVALID_ARGUMENT "Adam: beta1 is 1: it must be RANGE" if not `right`.
absl::Status CheckValue(bool right, std::string_view kind, std::string_view field, double value,
                        std::string_view range);

}  // namespace muster::optim
