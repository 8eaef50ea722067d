// Layer: one operation of a native graph, forward and backward, on a run of the batch's rows.
//
// A step runs on a crew of workers, each with its own rows [begin, end) of the same matrices. If
// the crew has several workers, Pack runs first for every layer. Then Forward runs for every layer
// in order, and Backward in reverse order (it may leave each worker's share of a dense gradient).
// After all workers have finished, Reduce runs: each worker makes a part of the gradient, as the
// sum of the shares in the order of the workers, or from the rows of all workers. At last Emit runs
// on the calling thread. A layer reads its variables in Pack, Forward, Backward and Reduce only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/base/parallel.h"
#include "muster/base/status.h"
#include "muster/engine/distinct_rows.h"
#include "muster/engine/engine.h"
#include "muster/engine/native/graph.h"
#include "muster/math/aligned_buffer.h"

namespace muster::engine::native {

// A matrix of the batch and its gradient: rows x ld floats each.
struct Storage {
  int width = 0;
  int64_t ld = 0;
  int readers = 0;  // layers (and the head) that read from it
  float* values = nullptr;
  float* gradients = nullptr;
  math::AlignedBuffer value_memory, gradient_memory;

  // With several readers the gradient starts at zero and each reader adds to it; a single reader
  // overwrites it.
  bool sums_gradients() const { return readers > 1; }
};

// A node: columns [column, column + width) of a storage. The parts of a Concat are columns of one
// storage, so that nothing is copied.
struct Tensor {
  Storage* storage = nullptr;
  int64_t column = 0;
  int width = 0;
  // Columns [gradient_begin, gradient_end) of this tensor need a gradient; empty: none.
  int gradient_begin = 0, gradient_end = 0;
  // The values are max(x, 0) of a dense layer whose only reader is a dense layer too, which
  // computes the gradient of x directly.
  bool reader_masks = false;

  bool needs_gradient() const { return gradient_begin < gradient_end; }
  int64_t ld() const { return storage->ld; }
  float* value(int64_t row) const { return storage->values + row * storage->ld + column; }
  float* gradient(int64_t row) const { return storage->gradients + row * storage->ld + column; }
};

// The other replicas of a step: the sums taken over all of them, and the first error of these sums.
class OtherReplicas {
 public:
  OtherReplicas(ReplicaSums& sums, double rows) : sums_(sums), rows_(rows) {}
  // The number of rows in all replicas together.
  double rows() const { return rows_; }
  // Called by worker 0. Does nothing after an error.
  void Add(std::span<double> values) {
    if (status_.ok()) status_ = sums_.Add(values);
  }
  const absl::Status& status() const { return status_; }

 private:
  ReplicaSums& sums_;
  const double rows_;
  absl::Status status_;
};

// The part of a step that all workers see. In Predict `training` is false.
struct Step {
  std::span<const VariableView> weights;
  const features::FeatureBatch* batch = nullptr;
  StepContext context;
  bool training = false;
  bool bf16 = false;                       // products of dense layers
  double regularization_share = 1;         // this engine's share of the whole batch
  bool workers_are_replicas = false;       // each worker has its own BatchNorm statistics
  OtherReplicas* others = nullptr;         // null: there are none
  std::span<const DistinctRows> distinct;  // by id list
};

// One member of the crew.
struct Worker {
  int index = 0, count = 1;
  int begin = 0, end = 0;  // the rows of this worker
  ThreadCrew* crew = nullptr;
  math::AlignedBuffer workspace;
  DistinctRowsFinder finder;
  double loss_sum = 0;
  double regularization = 0;

  int rows() const { return end - begin; }
  // The worker's part [first_of(n), last_of(n)) of n things.
  int64_t first_of(int64_t n) const { return n * index / count; }
  int64_t last_of(int64_t n) const { return n * (index + 1) / count; }
};

class Layer {
 public:
  virtual ~Layer() = default;
  // Called before a step, on the calling thread: reserves memory for its rows and this many
  // workers.
  virtual void Reserve(const Step& step, int workers);
  // Prepares this worker's part of what all workers will read. Used for bfloat16 with several
  // workers, which afterwards wait for one another.
  virtual void Pack(const Step& step, Worker& worker);
  virtual void Forward(const Step& step, Worker& worker) = 0;
  virtual void Backward(const Step& step, Worker& worker) = 0;
  virtual void Reduce(const Step& step, Worker& worker);
  virtual void Emit(const Step& step, GradientSink& sink);
};

// A dense gradient as one share per worker: after Reduce, worker 0's share is the sum.
class GradientShares {
 public:
  explicit GradientShares(int64_t elements) : elements_(elements) {}
  void Reserve(int workers);
  float* share(int worker) { return data_ + worker * stride_; }
  // Sums `worker`'s part of the elements over all shares.
  void Reduce(const Worker& worker);
  std::span<const float> sum() const { return {data_, static_cast<size_t>(elements_)}; }

 private:
  int64_t elements_;
  int64_t stride_ = 0;
  float* data_ = nullptr;
  math::AlignedBuffer memory_;
};

// Sets values[i] = f(values[i]), or multiplies the gradient by f'(x) where values = f(x). Rows x
// width at `ld`.
void ApplyActivation(Activation activation, float* values, int64_t ld, int rows, int width);
void ApplyActivationGradient(Activation activation, const float* values, int64_t ld, int rows,
                             int width, float* gradient, int64_t gradient_ld);

// The layers. `variable` arguments index Engine::variables().
std::unique_ptr<Layer> NewDenseInputLayer(int dense, const Tensor* output);
std::unique_ptr<Layer> NewDenseLayer(const Tensor* input, const Tensor* output,
                                     const DenseOptions& options, int kernel, int bias);
// All `bags` read the table `variable`; each bag has its own output.
std::unique_ptr<Layer> NewEmbeddingLayer(const std::vector<EmbeddingOptions>& bags, int variable,
                                         int ordinal, const std::vector<const Tensor*>& outputs);
struct LinearVariables {
  std::vector<int> tables, dense;
  int bias = -1;
};
std::unique_ptr<Layer> NewLinearLayer(const LinearOptions& options, LinearVariables variables,
                                      const Tensor* output);
struct BatchNormVariables {
  int gamma, beta, moving_mean, moving_variance;
};
std::unique_ptr<Layer> NewBatchNormLayer(const Tensor* input, const Tensor* output,
                                         const BatchNormOptions& options,
                                         BatchNormVariables variables);
// `ordinal` selects the layer's random stream.
std::unique_ptr<Layer> NewDropoutLayer(const Tensor* input, const Tensor* output, double rate,
                                       int ordinal);
std::unique_ptr<Layer> NewActivationLayer(const Tensor* input, const Tensor* output,
                                          Activation activation);
std::unique_ptr<Layer> NewAddLayer(const Tensor* a, const Tensor* b, const Tensor* output);
std::unique_ptr<Layer> NewL2NormalizeLayer(const Tensor* input, const Tensor* output);
// All `fields` have the same width, `output` has width 1.
std::unique_ptr<Layer> NewFactorizationMachineLayer(std::vector<const Tensor*> fields,
                                                    const Tensor* output);
// All four tensors have the same width; `x` may be `x0`.
std::unique_ptr<Layer> NewCrossLayer(const Tensor* x0, const Tensor* projected, const Tensor* x,
                                     const Tensor* output);

}  // namespace muster::engine::native
