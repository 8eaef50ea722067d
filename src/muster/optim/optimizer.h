// Optimizers: update weights from gradients, with slots that the trainer owns.
//
// Rule kTensorFlow, for models that this program builds: as the optimizers of Keras 2 in TensorFlow
// 2.15 (tf.keras.optimizers.legacy) and the kernels that they call
// (tensorflow/core/kernels/training_ops.cc):
//   ftrl     ApplyFtrl / SparseApplyFtrl, any power
//   adagrad  ApplyAdagradV2: acc += g^2; w -= lr * g / (sqrt(acc) + epsilon)
//   adam     ApplyAdam: bias-corrected rate, w -= lr_t * m / (sqrt(v) + epsilon)
//   rmsprop  plain and centered, with and without momentum
//   sgd      plain, with momentum, Nesterov's
// Gradients of one row are summed first, as in Keras's _resource_apply_sparse_duplicate_indices.
// For tables: ftrl, adagrad, sgd and rmsprop with momentum touch the step's rows only, as
// TensorFlow does. adam is dense-equivalent (moments decay and move every row at every step, as in
// Keras); rmsprop without momentum decays every row's slots; both can be `lazy` instead (the step's
// rows only). All but ftrl can have decoupled weight decay (weight_decay.h).
//
// Rule kKeras, for exported Keras models: as Keras 3's optimizers when ids repeat
// (docs/formats/keras_export.md). Quadratic terms use the sum of the squares of a row's entries,
// which comes with the sum (row_layout.h); epsilon is under the root in adagrad and rmsprop; and
// adam, ftrl, rmsprop and sgd with momentum move every row of a table at every step. Slots have
// Keras's names. All may have weight decay, none is lazy.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/optim/row_layout.h"
#include "muster/optim/schedule.h"
#include "muster/optim/step_rate.h"
#include "muster/optim/touched_rows.h"

namespace muster::optim {

struct OptimizerSpec {
  enum class Kind { kFtrl, kAdagrad, kAdam, kRmsProp, kSgd } kind = Kind::kAdagrad;
  enum class Rule { kTensorFlow, kKeras } rule = Rule::kTensorFlow;
  double learning_rate = 0.05;  // at the schedule's start
  ScheduleSpec schedule = {};
  // Replaces learning_rate and the schedule: to be set before each step.
  std::shared_ptr<const StepRate> rate = nullptr;
  double initial_accumulator = 0.1;   // ftrl, adagrad
  double epsilon = 1e-7;              // adagrad, adam, rmsprop
  double l1 = 0, l2 = 0;              // ftrl
  double l2_shrinkage = 0;            // ftrl
  double learning_rate_power = -0.5;  // ftrl
  double beta = 0;                    // ftrl: added to 2 * l2 as TensorFlow's `beta / lr`
  double beta1 = 0.9, beta2 = 0.999;  // adam
  double rho = 0.9;                   // rmsprop
  double momentum = 0;                // rmsprop, sgd
  bool centered = false;              // rmsprop
  bool nesterov = false;              // sgd with momentum
  double weight_decay = 0;            // all; ftrl by Keras's rule only
  bool lazy = false;                  // adam, rmsprop, weight_decay
  // sgd by Keras's rule: also takes squares, which only a clip by norm needs.
  bool squares = false;
  friend bool operator==(const OptimizerSpec&, const OptimizerSpec&) = default;
};
std::string_view OptimizerName(OptimizerSpec::Kind kind);  // "Ftrl", "RMSprop", ...: Keras's class

// The learning rate of update `step`, counted from 0.
inline float RateAt(const OptimizerSpec& spec, int64_t step) {
  if (spec.rate != nullptr) return spec.rate->At(step);
  return LearningRateAt(spec.learning_rate, spec.schedule, step);
}

struct SlotSpec {
  std::string name;  // "accumulator", "m", ...: the checkpoint has
                     // training/<OptimizerName>/<variable>/<name>
  float initial_value = 0;
};

// Stateless; thread-safe for distinct memory. `step` counts updates from 0 (schedules, adam's
// correction).
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual std::span<const SlotSpec> slots() const = 0;
  // Updates weights[i] from gradient[i]; slots[k] points to the k-th slot, as long as the weights.
  virtual void ApplyDense(std::span<float> weights, std::span<float* const> slots,
                          std::span<const float> gradient, int64_t step) const = 0;
  // Whether gradients of rows must come with the squares of their entries (row_layout.h).
  virtual bool wants_squares() const { return false; }
  RowLayout GetLayout(int64_t cols) const { return {.cols = cols, .squares = wants_squares()}; }
  // Updates the rows that a step touches. `table` (all rows x cols) and slots are whole tables;
  // rows are distinct; the gradient has the layout GetLayout(cols).
  virtual void ApplyRows(std::span<float> table, int64_t cols, std::span<float* const> slots,
                         std::span<const int32_t> rows, std::span<const float> gradient,
                         int64_t step) const = 0;
  // True: a table or its slots change at every step even where no row is touched (adam, rmsprop and
  // weight decay that are not lazy; Keras's ftrl and momentum). Then each ApplyRows, also one of no
  // rows, must be preceded by a Walk over all rows.
  virtual bool moves_untouched_rows() const = 0;
  // The changes that a step makes to rows [first, last) of a table besides ApplyRows. `touched` are
  // the rows of that ApplyRows. Threads may walk parts of one table; the resulting bytes do not
  // depend on the parts.
  virtual void Walk(std::span<float> /*table*/, int64_t /*cols*/, std::span<float* const> /*slots*/,
                    int64_t /*first*/, int64_t /*last*/, const TouchedRows& /*touched*/,
                    int64_t /*step*/) const {}
};

// A whole step of a table on this thread: the Walk, if needed, and ApplyRows.
void StepTable(const Optimizer& optimizer, std::span<float> table, int64_t cols,
               std::span<float* const> slots, std::span<const int32_t> rows,
               std::span<const float> gradient, int64_t step);

// INVALID_ARGUMENT names a value that is out of range.
absl::StatusOr<std::unique_ptr<Optimizer>> NewOptimizer(const OptimizerSpec& spec);

}  // namespace muster::optim
