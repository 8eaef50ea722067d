// Optimizers: update weights from gradients, with slots that the trainer owns. Each optimizer is
// one file, which says what it computes, and one line in the table of optimizer.cc
// (optimizer_kind.h).
//
// Rule kTensorFlow, for models that this program builds: as the optimizers of Keras 2 in TensorFlow
// 2.15 (tf.keras.optimizers.legacy) and the kernels that they call
// (tensorflow/core/kernels/training_ops.cc). Gradients of one row are summed first, as in Keras's
// _resource_apply_sparse_duplicate_indices. In a table only the rows of the step change, as in
// TensorFlow; an optimizer that changes all of them, as Keras does, can be `lazy` instead. An
// optimizer whose kind `decays` can have decoupled weight decay (weight_decay.h).
//
// Rule kKeras, for exported Keras models: as Keras 3's optimizers when ids repeat
// (docs/formats/keras_export.md). Quadratic terms use the sum of the squares of a row's entries,
// which comes with the sum (row_layout.h). Slots have Keras's names. All optimizers may have weight
// decay, none is lazy.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/optim/row_layout.h"
#include "muster/optim/schedule.h"
#include "muster/optim/step_rate.h"
#include "muster/optim/touched_rows.h"

namespace muster::optim {

struct OptimizerSpec {
  std::string kind = "adagrad";  // OptimizerKind::name
  enum class Rule { kTensorFlow, kKeras } rule = Rule::kTensorFlow;
  double learning_rate = 0.05;  // at the schedule's start
  ScheduleSpec schedule = {};
  // If not null, replaces learning_rate and the schedule. Its owner sets it before each step.
  std::shared_ptr<const StepRate> rate = nullptr;
  // The kind's own parameters by their names; a flag is 0 or 1. Others have their defaults.
  std::map<std::string, double, std::less<>> parameters = {};
  double weight_decay = 0;  // if the kind decays, or by Keras's rule
  bool lazy = false;        // if the kind decays: changes the step's rows only
  // By Keras's rule: gradients come with squares even if this optimizer does not need them, because
  // a clip by norm does.
  bool squares = false;

  // The value of a parameter of the kind: the given one, or the default.
  double Get(std::string_view parameter) const;
  friend bool operator==(const OptimizerSpec&, const OptimizerSpec&) = default;
};
std::string_view OptimizerName(std::string_view kind);  // Keras's class of a kind: "Adam", ...

// The optimizer of that kind with all parameters, and Keras's learning rate, at their defaults.
OptimizerSpec DefaultOptimizer(std::string_view kind);

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
  // True: each step also changes rows, or slots of rows, that it does not touch, as weight decay
  // does that is not lazy. Then each ApplyRows, also one without rows, must be preceded by a Walk
  // over all rows.
  virtual bool moves_untouched_rows() const = 0;
  // Makes the changes of a step to rows [first, last) of a table that ApplyRows does not make.
  // `touched` are the rows of that ApplyRows. Threads may walk parts of one table; the resulting
  // bytes do not depend on the parts.
  virtual void Walk(std::span<float> /*table*/, int64_t /*cols*/, std::span<float* const> /*slots*/,
                    int64_t /*first*/, int64_t /*last*/, const TouchedRows& /*touched*/,
                    int64_t /*step*/) const {}
};

// Does a whole step of a table on this thread: the Walk, if needed, and ApplyRows.
void StepTable(const Optimizer& optimizer, std::span<float> table, int64_t cols,
               std::span<float* const> slots, std::span<const int32_t> rows,
               std::span<const float> gradient, int64_t step);

// INVALID_ARGUMENT for an unknown kind or parameter, or names a value that is out of range.
absl::StatusOr<std::unique_ptr<Optimizer>> NewOptimizer(const OptimizerSpec& spec);

}  // namespace muster::optim
