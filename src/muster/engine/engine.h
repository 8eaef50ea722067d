// Engine: a model as a pure function of weights and a batch. It owns no weights, no slots and no
// statistics: those belong to the trainer, which keeps, replicates or serves them.
// Implementations, which pass engine_conformance.h: native/ (layers), tensorflow/ (exported Keras
// models).
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
  kDense,  // read whole, its gradient is dense
  kTable,  // rows x cols, read by ids; its gradient is a list of rows
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
  // A table whose rows come with their keys: its shape is [0, cols], and the engine is always given
  // a block of it.
  std::optional<features::GrowthSpec> growth = std::nullopt;
  int64_t elements() const;
};

// One variable's memory, not owned, 64-byte aligned. For a table, `rows` may be a block (see
// IdList).
struct VariableView {
  float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
};

// The precision in which the products of large layers are computed. kBfloat16 rounds their operands
// to 8 significant bits and sums in float; weights, slots, gradients and everything else stay
// float. It needs AMX.
enum class Precision { kFloat32, kBfloat16 };

// Sums over replicas that a step needs before it ends, when each replica has a part of one batch.
class ReplicaSums {
 public:
  virtual ~ReplicaSums() = default;
  // Replaces each value by its sum over all replicas. All replicas must call it equally often with
  // the same number of values, whatever their loss is. Called on the thread of
  // Engine::Step, which returns its error.
  virtual absl::Status Add(std::span<double> values) = 0;
};

// What a step needs besides weights and batch. Random numbers (dropout) are a function of
// (seed, step, replica, layer) only.
struct StepContext {
  uint64_t seed = 0;
  int64_t step = 0;  // the global step before this one
  uint32_t replica = 0;
  // Gradients and loss are (weighted) sums over rows divided by this, unless the head sums
  // (HeadSpec::LossScale). 0: divided by the number of the batch's own rows, as tf.estimator does,
  // also with weights. A trainer that spreads one batch over replicas gives the number of rows of
  // the whole batch; a replica's part may then be empty, and all its gradients are 0.
  double denominator = 0;
  // For synchronised BatchNorm of one batch over replicas, with its `denominator`; null: over this
  // replica's rows alone. Not owned.
  ReplicaSums* replica_sums = nullptr;
};

// Takes each gradient as soon as it is ready, on the thread that called Step, in an order that is
// the same at every step. After the call the engine does not read that variable again in this step,
// so the sink may update it at once. Spans are valid during the call only.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  virtual void Dense(int variable, std::span<const float> gradient) = 0;
  // `rows` are distinct, in order of first appearance in the batch; gradient is rows.size() x cols:
  // the sum over all appearances. Where WantsSquares(variable), it is rows.size() x (2 cols): each
  // row has its sums, then the sum over all appearances of the squared gradients.
  virtual void Rows(int variable, std::span<const int32_t> rows,
                    std::span<const float> gradient) = 0;
  // Whether the sums of squares are wanted for this table, as by an optimizer that squares the
  // gradient of each appearance (Keras's). The answer is the same at every step. Only engines of
  // exported models can give squares, and only their optimizers ask for them. A sink that forwards
  // to another sink forwards this question.
  virtual bool WantsSquares(int /*variable*/) const { return false; }
  // Whether the single appearances are wanted instead: `rows` may then repeat, and the gradient is
  // rows.size() x cols, one row for each appearance. Otherwise like WantsSquares.
  virtual bool WantsEntries(int /*variable*/) const { return false; }
  // kState: this batch's mean or variance.
  virtual void Statistic(int variable, std::span<const float> value) = 0;
};

struct StepResult {
  double loss = 0;       // over the batch, with regularisation; this is minimised
  double data_loss = 0;  // without regularisation
  // What the batch adds to the states of the metrics, as Forward::metric_states, from the step's
  // own forward pass. Empty if the engine's step gives none, and for a batch without rows.
  std::vector<std::vector<float>> metric_states = {};
};

// Predictions for a batch: `logits` rows x logits_dimension.
struct Forward {
  std::vector<float> logits;
  // The (weighted) sum over rows when the batch has labels. For an exported model: the batch's loss
  // as Keras's evaluate computes it, with regularisation, times its rows.
  double loss_sum = 0;
  // For an exported model only. Its predictions; the first is also the logits if it holds floats.
  // If the batch has labels: what the batch adds to the states of the metrics, in order.
  std::vector<features::RawColumn> predictions = {};
  std::vector<std::vector<float>> metric_states = {};
};

// A layer as it is shown to people (TensorBoard's graph).
struct LayerInfo {
  std::string name;  // "dnn/hiddenlayer_0/Dense"; '/' groups, as in the names of variables
  std::string op;    // "Dense", "EmbeddingBag", "Concat", ...
  // What the layer reads: earlier layers, FeatureBatch::dense and id_lists, variables().
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

// A table and a list of ids into it.
struct TableUse {
  int variable = 0;
  int id_list = 0;  // of FeatureBatch::id_lists
};

class Updater;

// One owner thread (Step and Predict use inner threads of their own).
class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::span<const VariableSpec> variables() const = 0;
  virtual int logits_dimension() const = 0;
  // `weights` are in the order of variables(). INVALID_ARGUMENT for labels that do not fit the head
  // (names the row). A NaN or infinite loss is returned and no gradients are given; with
  // replica_sums some gradients may have been given, NaN or infinite as well.
  virtual absl::StatusOr<StepResult> Step(std::span<const VariableView> weights,
                                          const features::FeatureBatch& batch,
                                          const StepContext& context, GradientSink& sink) = 0;
  // All uses of tables. A caller that gives the engine blocks of tables renumbers the ids by this
  // list. Lists that share a table, and tables that share a list, share their numbers.
  virtual std::span<const TableUse> table_uses() const = 0;

  // The number of floats in each of StepResult::metric_states; empty: a step gives none.
  virtual std::span<const size_t> metric_sizes() const { return {}; }

  // Adds to a batch the id lists that table_uses() names, where the engine derives them from the
  // other columns (finds_ids). Callers that renumber ids call it first. Step and Predict do it
  // where the batch has no id lists.
  virtual bool finds_ids() const { return false; }
  virtual absl::Status FindIds(features::FeatureBatch* /*batch*/) { return absl::OkStatus(); }

  // Promises that the values of `weights` do not change until the next Step or Freeze: Predict,
  // when given the same memory, may use results computed from them once. Predictions may then
  // differ in their last bits from those without Freeze. INVALID_ARGUMENT for weights that do not
  // fit.
  virtual absl::Status Freeze(std::span<const VariableView> /*weights*/) {
    return absl::OkStatus();
  }
  // Inference: dropout off, BatchNorm with its moving statistics. Replaces *out.
  virtual absl::Status Predict(std::span<const VariableView> weights,
                               const features::FeatureBatch& batch, Forward* out) = 0;

  // Says that this thread does not make another call at once, but does something that may start
  // threads or take long (a save, an evaluation). What the engine holds from one call to the next,
  // such as the core that the thread is pinned to, is released until the next call.
  virtual void Rest() {}

  // Null: the model's optimizer is a rule (optim/) with numbers. See updater.h.
  virtual Updater* updater() { return nullptr; }

  // For people to look at; an engine need not have them. The layers, each after those it reads; the
  // last one gives the logits.
  virtual std::span<const LayerInfo> layers() const { return {}; }
  // The outputs of the model's watched layers in the last Step, also after calls of Predict.
  virtual std::vector<Activations> activations() const { return {}; }
};

}  // namespace muster::engine
