// Engine: a model as a pure function of weights and a batch. It owns no weights, no slots and no
// statistics: those belong to the trainer, which keeps, replicates or serves them. Its
// implementations, which pass engine_conformance.h, are native/ (layers) and tensorflow/ (exported
// Keras models).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/features/batch.h"
#include "muster/features/growth.h"

namespace muster::engine {

enum class VariableKind {
  kDense,  // the whole variable is read, its gradient is dense
  kTable,  // rows x cols: rows are read by ids, the gradient is a list of rows
  kState,  // BatchNorm's moving statistics: not trained, see GradientSink::Statistic
};

struct Initializer {
  enum class Kind { kConstant, kGlorotUniform, kTruncatedNormal } kind = Kind::kConstant;
  double value = 0;  // the constant, or the standard deviation
};

struct VariableSpec {
  std::string name;  // as in the checkpoint
  VariableKind kind = VariableKind::kDense;
  std::vector<int64_t> shape;  // [n] or [rows, cols]
  Initializer initializer;
  int group = 0;        // which of the model's optimizers trains it
  double momentum = 0;  // kState: new = momentum * old + (1 - momentum) * batch statistic
  // Set for a table that grows: its shape is [0, cols], and the engine is always given a block of
  // it.
  std::optional<features::GrowthSpec> growth = std::nullopt;
  int64_t elements() const;
};

// The memory of one variable, not owned, 64-byte aligned. For a table it may be a block of rows
// (see IdList).
struct VariableView {
  float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
};

// The precision in which the products of large layers are computed. kBfloat16 rounds their operands
// to 8 significant bits and sums in float; weights, slots, gradients and everything else stay
// float. It needs AMX.
enum class Precision { kFloat32, kBfloat16 };

// Sums over all replicas that a step needs before it ends, where each replica has a part of one
// batch.
class ReplicaSums {
 public:
  virtual ~ReplicaSums() = default;
  // Replaces each value by its sum over all replicas. All replicas must call it equally often with
  // the same number of values, even if a loss is not finite. Called on the thread of Engine::Step,
  // which returns the error.
  virtual absl::Status Add(std::span<double> values) = 0;
};

// What a step needs besides weights and batch. Random numbers (dropout) are a function of
// (seed, step, replica, layer) only.
struct StepContext {
  uint64_t seed = 0;
  int64_t step = 0;  // the global step before this one
  uint32_t replica = 0;
  // What the sums over rows that make up loss and gradients are divided by, unless the head sums
  // (HeadSpec::LossScale). 0: the number of the batch's own rows, as in tf.estimator, also if rows
  // have weights. A trainer that spreads one batch over replicas gives the number of rows of the
  // whole batch; a replica's part may then be empty, and all its gradients are 0.
  double denominator = 0;
  // For synchronised BatchNorm where one batch (with its `denominator`) is spread over replicas;
  // null: statistics are taken over this replica's rows alone. Not owned.
  ReplicaSums* replica_sums = nullptr;
};

// Takes each gradient as soon as it is ready, on the thread that called Step, in the same order at
// every step. The engine does not read a variable again in a step after it has given its gradient,
// so the sink may update the variable at once. Spans are valid during the call only.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  virtual void Dense(int variable, std::span<const float> gradient) = 0;
  // `rows` are distinct, in order of first appearance in the batch. `gradient` is rows.size() x
  // cols: for each row the sum over all its appearances. If WantsSquares(variable), it is
  // rows.size() x (2 cols): each row has its sums, then the sums of the squared gradients of its
  // appearances.
  virtual void Rows(int variable, std::span<const int32_t> rows,
                    std::span<const float> gradient) = 0;
  // Whether the sums of squares are wanted for this table, as by an optimizer that squares the
  // gradient of each appearance (Keras's optimizers do). The answer is the same at every step. Only
  // engines of exported models can give squares, and only their optimizers ask for them. A sink
  // that forwards gradients to another sink forwards this question too.
  virtual bool WantsSquares(int /*variable*/) const { return false; }
  // Whether each appearance is wanted separately: `rows` may then repeat, and `gradient` is
  // rows.size() x cols, one row for each appearance. Otherwise like WantsSquares.
  virtual bool WantsEntries(int /*variable*/) const { return false; }
  // For a kState variable: this batch's mean or variance.
  virtual void Statistic(int variable, std::span<const float> value) = 0;
};

struct StepResult {
  double loss = 0;       // over the batch, with regularisation; this is minimised
  double data_loss = 0;  // without regularisation
  // What this batch adds to the states of the metrics (see Forward::metric_states), computed by the
  // step's own forward pass. Empty if the engine's step does not compute it, and for a batch
  // without rows.
  std::vector<std::vector<float>> metric_states = {};
};

// Predictions for a batch: `logits` rows x logits_dimension.
struct Forward {
  std::vector<float> logits;
  // With labels: the (weighted) sum of the loss over rows. For an exported model: the batch's loss
  // as Keras's evaluate computes it, with regularisation, times its number of rows.
  double loss_sum = 0;
  // Predictions of an exported model; if the first one holds floats, `logits` has them too.
  std::vector<features::RawColumn> predictions = {};
  // For an exported model and a batch with labels: what the batch adds to each metric's state.
  std::vector<std::vector<float>> metric_states = {};
};

// A layer as it is shown to people (TensorBoard's graph).
struct LayerInfo {
  std::string name;  // "dnn/hiddenlayer_0/Dense"; '/' groups, as in the names of variables
  std::string op;    // "Dense", "EmbeddingBag", "Concat", ...
  // Indices of what the layer reads: earlier layers, FeatureBatch::dense and id_lists, variables().
  std::vector<int> layers = {}, dense = {}, id_lists = {}, variables = {};
  std::vector<std::pair<std::string, std::string>> attributes = {};  // such as activation: relu
  int width = 0;                                                     // its output is rows x width
};

// The output of a layer in a step: rows x width, row i at values + i * ld. Not owned.
struct Activations {
  std::string name;
  const float* values = nullptr;
  int rows = 0;
  int width = 0;
  int64_t ld = 0;
};

// A table and the list of ids that index it.
struct TableUse {
  int variable = 0;
  int id_list = 0;  // index in FeatureBatch::id_lists
};

class Updater;

// One owner thread (Step and Predict use inner threads of their own).
class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::span<const VariableSpec> variables() const = 0;
  virtual int logits_dimension() const = 0;
  // `weights` are in the order of variables(). INVALID_ARGUMENT for labels that do not fit the head
  // (the error names the row). If the loss is NaN or infinite, it is returned and no gradients are
  // given; with replica_sums some gradients may have been given, NaN or infinite as well.
  virtual absl::StatusOr<StepResult> Step(std::span<const VariableView> weights,
                                          const features::FeatureBatch& batch,
                                          const StepContext& context, GradientSink& sink) = 0;
  // All uses of tables. A caller that gives the engine blocks of tables renumbers the ids by this
  // list. Lists that share a table, and tables that share a list, use the same numbers.
  virtual std::span<const TableUse> table_uses() const = 0;

  // The number of floats in each of StepResult::metric_states; empty: a step computes none.
  virtual std::span<const size_t> metric_sizes() const { return {}; }

  // finds_ids: the engine derives id lists from the other columns. FindIds then adds to a batch the
  // lists that table_uses() names. Callers that renumber ids call it first; Step and Predict call
  // it for a batch without id lists.
  virtual bool finds_ids() const { return false; }
  virtual absl::Status FindIds(features::FeatureBatch* /*batch*/) { return absl::OkStatus(); }

  // Promises that the values of `weights` do not change until the next Step or Freeze: when given
  // the same memory, Predict may reuse results that depend on them alone. Predictions may then
  // differ in their last bits from those without Freeze. INVALID_ARGUMENT for weights that do not
  // fit.
  virtual absl::Status Freeze(std::span<const VariableView> /*weights*/) {
    return absl::OkStatus();
  }
  // Inference: dropout off, BatchNorm with its moving statistics. Replaces *out.
  virtual absl::Status Predict(std::span<const VariableView> weights,
                               const features::FeatureBatch& batch, Forward* out) = 0;

  // Says that this thread will not call the engine again at once, but does something that may start
  // threads or take long (a save, an evaluation). What the engine holds between calls, such as the
  // core that the thread is pinned to, is released until the next call.
  virtual void Rest() {}

  // The part of the optimizer that the engine computes (updater.h); null: a rule of optim/ is used.
  virtual Updater* updater() { return nullptr; }

  // The layers, to be shown to people: each comes after those it reads, the last one gives the
  // logits. May be empty.
  virtual std::span<const LayerInfo> layers() const { return {}; }
  // The outputs of the model's watched layers in the last Step, which calls of Predict do not
  // change.
  virtual std::vector<Activations> activations() const { return {}; }
};

}  // namespace muster::engine
