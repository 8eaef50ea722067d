// Optimizers in TensorFlow's rules: gradient to weights, with slots that the trainer owns.
//
//   ftrl     ApplyFtrl / SparseApplyFtrl (tensorflow/core/kernels/training_ops.cc), any power
//   adagrad  ApplyAdagradV2: acc += g^2; w -= lr * g / (sqrt(acc) + epsilon)
//   adam     Keras 2 Adam: bias-corrected rate, w -= lr_t * m / (sqrt(v) + epsilon)
// For tables: ftrl and adagrad move touched rows only, which is what TensorFlow does. adam is
// dense-equivalent (moments decay and move every row at every step, as Keras does), or `lazy`
// (touched rows only).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"

namespace muster::optim {

struct OptimizerSpec {
  enum class Kind { kFtrl, kAdagrad, kAdam } kind = Kind::kAdagrad;
  double learning_rate = 0.05;
  double initial_accumulator = 0.1;   // ftrl, adagrad
  double epsilon = 1e-7;              // adagrad, adam
  double l1 = 0, l2 = 0;              // ftrl
  double l2_shrinkage = 0;            // ftrl
  double learning_rate_power = -0.5;  // ftrl
  double beta = 0;                    // ftrl: added to 2 * l2 as TensorFlow's `beta / lr`
  double beta1 = 0.9, beta2 = 0.999;  // adam
  bool lazy = false;                  // adam
  friend bool operator==(const OptimizerSpec&, const OptimizerSpec&) = default;
};
std::string_view OptimizerName(OptimizerSpec::Kind kind);  // "Ftrl", "Adagrad", "Adam"

struct SlotSpec {
  std::string name;  // "accumulator", "linear", "m", "v": the checkpoint has
                     // training/<OptimizerName>/<variable>/<name>
  float initial_value = 0;
};

// Stateless; thread-safe for distinct memory. `step` counts updates from 0 (adam's correction).
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual std::span<const SlotSpec> slots() const = 0;
  // weights[i] from gradient[i]; slots[k] points to the k-th slot, as long as the weights.
  virtual void ApplyDense(std::span<float> weights, std::span<float* const> slots,
                          std::span<const float> gradient, int64_t step) const = 0;
  // `table` (all rows x cols) and slots are whole tables; rows are distinct.
  virtual void ApplyRows(std::span<float> table, int64_t cols, std::span<float* const> slots,
                         std::span<const int32_t> rows, std::span<const float> gradient,
                         int64_t step) const = 0;
  // True: a table moves at every step also when no row is touched (dense-equivalent adam), so that
  // the trainer must call ApplyRows even with no rows.
  virtual bool moves_untouched_rows() const = 0;
};

// INVALID_ARGUMENT for a value out of its range, named.
absl::StatusOr<std::unique_ptr<Optimizer>> NewOptimizer(const OptimizerSpec& spec);

}  // namespace muster::optim
