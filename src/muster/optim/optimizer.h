// Optimizers: gradient to weights, with slots that the trainer owns.
//
// Rule kTensorFlow, of models that this program builds: the optimizers followed are Keras 2's of
// TensorFlow 2.15 (tf.keras.optimizers.legacy), and the kernels that they call
// (tensorflow/core/kernels/training_ops.cc):
//   ftrl     ApplyFtrl / SparseApplyFtrl, any power
//   adagrad  ApplyAdagradV2: acc += g^2; w -= lr * g / (sqrt(acc) + epsilon)
//   adam     ApplyAdam: bias-corrected rate, w -= lr_t * m / (sqrt(v) + epsilon)
//   rmsprop  plain and centered, with and without momentum
//   sgd      plain, with momentum, Nesterov's
// Gradients of one row are summed first, as Keras's _resource_apply_sparse_duplicate_indices does.
// For tables: ftrl, adagrad, sgd and rmsprop with momentum touch the step's rows only, which is
// what TensorFlow does. adam is dense-equivalent (moments decay and move every row at every step,
// as Keras does), rmsprop without momentum lets every row's slots decay; both can be `lazy` instead
// (the step's rows only). Each but ftrl can have decoupled weight decay (weight_decay.h).
//
// Rule kKeras, of exported Keras models: Keras 3's optimizers as they do when ids repeat
// (docs/formats/keras_export.md): what is quadratic takes the sum of the squares of a row's
// entries, which come with the sum (row_layout.h), epsilon is in adagrad's and rmsprop's root, and
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
  double learning_rate = 0.05;  // of the schedule's begin
  ScheduleSpec schedule = {};
  // Instead of both: to be set before each step.
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
  double weight_decay = 0;            // all, but ftrl by Keras's rule only
  bool lazy = false;                  // adam, rmsprop, weight_decay
  // sgd by Keras's rule: takes squares too, which it does not need itself; a clip by a norm does.
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
  // weights[i] from gradient[i]; slots[k] points to the k-th slot, as long as the weights.
  virtual void ApplyDense(std::span<float> weights, std::span<float* const> slots,
                          std::span<const float> gradient, int64_t step) const = 0;
  // Whether gradients of rows must come with the squares of their entries (row_layout.h).
  virtual bool wants_squares() const { return false; }
  RowLayout LayoutOf(int64_t cols) const { return {.cols = cols, .squares = wants_squares()}; }
  // What a step does to the rows that it touches. `table` (all rows x cols) and slots are whole
  // tables; rows are distinct; the gradient is of LayoutOf(cols).
  virtual void ApplyRows(std::span<float> table, int64_t cols, std::span<float* const> slots,
                         std::span<const int32_t> rows, std::span<const float> gradient,
                         int64_t step) const = 0;
  // True: a table or its slots move at every step also where no row is touched (adam, rmsprop and
  // weight decay that are not lazy; Keras's ftrl and momentum). Then each ApplyRows, also one of no
  // rows, needs a Walk over all rows in front of it.
  virtual bool moves_untouched_rows() const = 0;
  // What a step does to rows [first, last) of a table besides ApplyRows. `touched` are the rows of
  // that ApplyRows. Threads may walk parts of one table; the bytes do not depend on the parts.
  virtual void Walk(std::span<float> /*table*/, int64_t /*cols*/, std::span<float* const> /*slots*/,
                    int64_t /*first*/, int64_t /*last*/, const TouchedRows& /*touched*/,
                    int64_t /*step*/) const {}
};

// A whole step of a table on this thread: the Walk, where there is one, and ApplyRows.
void StepTable(const Optimizer& optimizer, std::span<float> table, int64_t cols,
               std::span<float* const> slots, std::span<const int32_t> rows,
               std::span<const float> gradient, int64_t step);

// INVALID_ARGUMENT for a value out of its range, named.
absl::StatusOr<std::unique_ptr<Optimizer>> NewOptimizer(const OptimizerSpec& spec);

}  // namespace muster::optim
