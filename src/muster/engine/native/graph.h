// GraphBuilder composes layers into a native Engine. Canned models (model/) and users' own model
// functions use the same calls.
//
//   GraphBuilder graph;
//   auto x = graph.Concat({graph.DenseInput(0, 1), graph.EmbeddingBag({...})});
//   auto h = graph.Dense(x, {.name = "dnn/hiddenlayer_0", .units = 100,
//                            .activation = Activation::kRelu});
//   auto logits = graph.Dense(h, {.name = "dnn/logits", .units = 1});
//   MUSTER_ASSIGN_OR_RETURN(auto engine, std::move(graph).Finish(logits, NewBinaryHead(),
//   options));
//
// Each layer has a file (dense.cc, linear.cc, embedding.cc, batch_norm.cc, dropout.cc, ...) with
// forward and backward, and a numerical gradient check. Matrices are row-major, rows x columns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/engine.h"
#include "muster/engine/heads/head.h"
#include "muster/features/column.h"

namespace muster::engine::native {

enum class Activation { kNone, kRelu, kTanh, kSigmoid };

using Node = int;  // a matrix in the graph

struct DenseOptions {
  std::string name;  // variables NAME/kernel [in, units] and NAME/bias [units]
  int units = 0;
  Activation activation = Activation::kNone;
  bool bias = true;
  Initializer kernel_initializer{Initializer::Kind::kGlorotUniform, 0};
  double l1 = 0,
         l2 = 0;  // adds l1 * sum|w| + l2 * sum w^2 of the kernel to the loss (Keras's rule)
  int group = 0;
};

struct EmbeddingOptions {
  std::string name = {};  // the variable [rows, dimension]
  int id_list = 0;        // index in FeatureBatch::id_lists
  int64_t rows = 0;
  // set: the table grows, and `rows` is 0
  std::optional<features::GrowthSpec> growth = std::nullopt;
  int dimension = 0;
  features::Combiner combiner = features::Combiner::kMean;
  // If not kNone: each entry of a row's list is a step (an entry without an id a step of zeros),
  // and the steps are pooled; the combiner and the weights of ids are not used.
  features::Pooling pooling = features::Pooling::kNone;
  double max_norm = 0;  // > 0: longer rows (L2 norm) are scaled down to it when read; 0: no limit
  // Adds l1 * sum|w| + l2 * sum w^2 over the whole table to the loss (Keras's
  // embeddings_regularizer). Every row then has a gradient, and GradientSink::Dense gets it.
  double l1 = 0, l2 = 0;
  Initializer initializer{};
  int group = 0;
  std::string layer = {};  // the folder of the layer's name; "": the folder of `name`
};

// The sum over tables of their rows' weights, each times the weight of its id, + bias + dense
// columns * weights: TensorFlow's LinearModel.
struct LinearOptions {
  struct Table {
    std::string name;  // the variable [rows, units]
    int id_list = 0;
    int64_t rows = 0;
    // set: the table grows, and `rows` is 0
    std::optional<features::GrowthSpec> growth = std::nullopt;
  };
  struct DenseWeights {
    std::string name;  // the variable [width, units]
    int dense = 0;     // index in FeatureBatch::dense
    int width = 1;
  };
  std::vector<Table> tables = {};  // combined by sum
  std::vector<DenseWeights> dense = {};
  std::string bias_name = {};  // the variable [units]; "": no bias
  int group = 0;
  std::string name = "linear/linear_model";  // the layer's name
  int units = 1;
};

struct BatchNormOptions {
  std::string name;  // NAME/gamma, beta, moving_mean, moving_variance
  double momentum = 0.99;
  double epsilon = 1e-3;
  int group = 0;
  bool synchronized = false;  // over all replicas' rows, as Keras's synchronized=True
};

// A layer of a cross network: x0 * (W x + b) + x, elementwise products. W is square, or, with a
// rank, the product of two kernels [width, rank] and [rank, width].
struct CrossOptions {
  std::string name;       // variables NAME/{kernel,bias}, or NAME/v/kernel and NAME/u/{kernel,bias}
  int rank = 0;           // 0: full
  double l1 = 0, l2 = 0;  // regularisation of the kernels, as in DenseOptions
  int group = 0;
};

struct EngineOptions {
  // Sub-batches computed in parallel; sums are taken in the order of the sub-batches, so that the
  // same number of threads gives the same bytes. A batch is cut into `threads` nearly equal runs of
  // rows.
  int threads = 1;
  // Each sub-batch of a training step counts as a replica's: BatchNorm that is not synchronised
  // takes its statistics per sub-batch, and the moving statistics are updated with their mean,
  // weighted by rows.
  bool sub_batches_are_replicas = false;
  // Precision of Step and of Predict. FAILED_PRECONDITION from Finish() if the processor lacks it.
  Precision training = Precision::kFloat32;
  Precision inference = Precision::kFloat32;
};

class GraphBuilder {
 public:
  GraphBuilder();
  ~GraphBuilder();
  GraphBuilder(GraphBuilder&&) noexcept;

  // Column `dense` of FeatureBatch::dense; `name` is the layer's name.
  Node DenseInput(int dense, int width, const std::string& name = "DenseInput");
  Node EmbeddingBag(const EmbeddingOptions& options);
  // Makes several bags over one table: their options may differ in id list, combiner, pooling and
  // layer only. The table's gradient is the sum over all bags.
  std::vector<Node> SharedEmbeddingBags(const std::vector<EmbeddingOptions>& bags);
  Node Concat(const std::vector<Node>& parts);
  Node Dense(Node input, const DenseOptions& options);
  Node Linear(const LinearOptions& options);  // rows x units
  Node BatchNorm(Node input, const BatchNormOptions& options);
  Node Dropout(Node input, double rate);  // scaled by 1 / (1 - rate) in training
  Node Activate(Node input, Activation activation);
  Node Add(Node a, Node b);
  Node L2Normalize(Node input);  // rows of length 1
  // The sum over all pairs of fields of the inner products of their vectors: rows x 1. There are at
  // least two fields, and all have one width. Rendle, "Factorization Machines" (2010).
  Node FactorizationMachine(const std::vector<Node>& fields,
                            const std::string& name = "FactorizationMachine");
  // `x0` is the input of the whole network, `x` the input of this layer (x0 for the first one).
  // Wang et al., "DCN V2" (2021).
  Node Cross(Node x0, Node x, const CrossOptions& options);
  // Lets Engine::activations() give the output of `node` under this name.
  void Watch(Node node, const std::string& name);

  // Returns the errors of all calls (a node used twice where no gradient rule allows it, unequal
  // widths, a variable name given twice, no units) as one INVALID_ARGUMENT. FAILED_PRECONDITION for
  // a precision that this processor does not have.
  absl::StatusOr<std::unique_ptr<Engine>> Finish(Node logits, std::unique_ptr<Head> head,
                                                 EngineOptions options = {}) &&;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::engine::native
