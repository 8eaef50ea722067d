// Engine: a model as a pure function of weights and a batch. It owns no weights, no slots and no
// statistics: those belong to the trainer, who keeps, replicates or serves them.
// Members, which pass engine_conformance.h: native/ (layers), tensorflow/ (exported Keras models).
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
  // A table whose rows come with their keys: shape [0, cols], and what an engine is given is always
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

// In what the products of large layers are computed. kBfloat16 rounds their operands to 8
// significant bits and sums in float; weights, slots, gradients and all else stay float. It needs
// AMX.
enum class Precision { kFloat32, kBfloat16 };

// Sums that replicas, each with a part of the same batch, need in the midst of a step.
class ReplicaSums {
 public:
  virtual ~ReplicaSums() = default;
  // Replaces each value by its sum over all replicas. Each of them calls it equally often with as
  // many values, whatever became of its loss. On the thread that called Engine::Step, whose error
  // this one's is.
  virtual absl::Status Add(std::span<double> values) = 0;
};

// What a step needs besides weights and batch. Random numbers (dropout) are a function of
// (seed, step, replica, layer) only.
struct StepContext {
  uint64_t seed = 0;
  int64_t step = 0;  // the global step before this one
  uint32_t replica = 0;
  // Gradients and loss are (weighted) sums over rows divided by this; 0: the batch's own rows, as
  // tf.estimator does it with weights too. A trainer that spreads one batch over replicas gives the
  // whole batch's rows; then a replica's part may have no row, and all its gradients are 0.
  double denominator = 0;
  // For synchronised BatchNorm of one batch over replicas, with its `denominator`; null: this
  // replica's rows alone. Not owned.
  ReplicaSums* replica_sums = nullptr;
};

// Takes each gradient as soon as it is ready, on the thread that called Step, in an order that is
// the same at every step. When a call comes, the engine does not read that variable again in this
// step: the sink may update it at once. Spans are valid during the call only.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  virtual void Dense(int variable, std::span<const float> gradient) = 0;
  // `rows` are distinct, in order of first appearance in the batch; gradient is rows.size() x cols:
  // the sum over all appearances. Where WantsSquares(variable), it is rows.size() x (2 cols): of
  // each row its sums, then the sum over all appearances of the square of each.
  virtual void Rows(int variable, std::span<const int32_t> rows,
                    std::span<const float> gradient) = 0;
  // An optimizer that squares the gradient of each appearance (Keras's) wants it of its tables; the
  // same at every step. Only engines of exported models can tell, and only their optimizers ask. A
  // sink in front of another one asks that one.
  virtual bool WantsSquares(int /*variable*/) const { return false; }
  // Or it wants the appearances themselves: `rows` may then repeat, and the gradient is rows.size()
  // x cols, one for each. Asked and answered as WantsSquares is.
  virtual bool WantsEntries(int /*variable*/) const { return false; }
  // kState: this batch's mean or variance.
  virtual void Statistic(int variable, std::span<const float> value) = 0;
};

struct StepResult {
  double loss = 0;       // over the batch, with regularisation: what is minimised
  double data_loss = 0;  // without
};

// Predictions for a batch: `logits` rows x logits_dimension.
struct Forward {
  std::vector<float> logits;
  double loss_sum = 0;  // sum over rows (weighted) when the batch has labels
  // Of an exported model: each of its predictions, the first of which is the logits too where it is
  // of floats; and what the batch adds to the states of its metrics, in order, when it has labels.
  std::vector<features::RawColumn> predictions = {};
  std::vector<std::vector<float>> metric_states = {};
};

// A layer as a person looks at it (TensorBoard's graph).
struct LayerInfo {
  std::string name;  // "dnn/hiddenlayer_0/Dense"; '/' groups, as in the names of variables
  std::string op;    // "Dense", "EmbeddingBag", "Concat", ...
  // What it reads: earlier layers, FeatureBatch::dense and id_lists, variables().
  std::vector<int> layers = {}, dense = {}, id_lists = {}, variables = {};
  std::vector<std::pair<std::string, std::string>> attributes = {};  // such as activation: relu
  int width = 0;                                                     // it gives rows x width
};

// What a layer gave in a step: rows x width, row i at values + i * ld. Not owned.
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
  // `weights` in the order of variables(). INVALID_ARGUMENT for labels that do not fit the head
  // (naming the row). When the loss is NaN or infinite it is returned and no gradient was given,
  // but with replica_sums some that are as little numbers.
  virtual absl::StatusOr<StepResult> Step(std::span<const VariableView> weights,
                                          const features::FeatureBatch& batch,
                                          const StepContext& context, GradientSink& sink) = 0;
  // All of them: who gives the engine blocks of tables renumbers the ids by it. Lists that share a
  // table, and tables that share a list, share their numbers.
  virtual std::span<const TableUse> table_uses() const = 0;

  // Gives a batch the id lists that table_uses() names, where the engine itself finds them from the
  // other columns (finds_ids); those who renumber ids call it before. Step and Predict do it where
  // the batch has none.
  virtual bool finds_ids() const { return false; }
  virtual absl::Status FindIds(features::FeatureBatch* /*batch*/) { return absl::OkStatus(); }

  // Says that what `weights` name stays as it is until the next Step or Freeze: Predict, when given
  // the same memory, may use what the engine computed from it once. Predictions may then differ in
  // their last bits from those without it. INVALID_ARGUMENT for weights that do not fit.
  virtual absl::Status Freeze(std::span<const VariableView> /*weights*/) {
    return absl::OkStatus();
  }
  // Inference: dropout off, BatchNorm with its moving statistics. Replaces *out.
  virtual absl::Status Predict(std::span<const VariableView> weights,
                               const features::FeatureBatch& batch, Forward* out) = 0;

  // Says that what comes next on this thread is not another call at once, but something that may
  // start threads or take long (a save, an evaluation): what an engine holds between calls that
  // follow each other, such as a core that the thread stays on, is given back until the next one.
  virtual void Rest() {}

  // Null: the model's optimizer is a rule (optim/) and numbers. updater.h.
  virtual Updater* updater() { return nullptr; }

  // For people to look at; an engine need not have them. The layers, each after those it reads, the
  // last gives the logits:
  virtual std::span<const LayerInfo> layers() const { return {}; }
  // and what the layers that the model watches gave in the last Step, whatever was predicted since.
  virtual std::vector<Activations> activations() const { return {}; }
};

}  // namespace muster::engine
