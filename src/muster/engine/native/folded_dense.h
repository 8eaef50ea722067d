// FoldedDense: what a dense layer over embeddings gives, for weights that stay as they are. The
// product of a table's row with its rows of the kernel is taken once, and a row of the batch is
// then
//   y = f(bias + sum over tables of (table W_table)[id] + x' W')
// where x' are the columns of the input that come from no table. It needs tables that are read as
// they are, at one id a row (or none), and small enough that their products stay in the caches.
// Sums are taken in another order than by DenseLayer; they depend on the row alone.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "muster/engine/native/layer.h"
#include "muster/engine/native/native_graph.h"

namespace muster::engine::native {

// A layer that runs in Predict only, in place of others.
class FoldedDense : public Layer {
 public:
  // Computes the products anew. On the thread that owns the engine.
  virtual void Freeze(std::span<const VariableView> weights) = 0;
  // Whether the batch's id lists are of the kind that it can read.
  virtual bool Fits(const features::FeatureBatch& batch) const = 0;
};

// The graph's layers as Predict may run them with weights that stay.
struct FoldedGraph {
  std::vector<std::unique_ptr<FoldedDense>> folds;
  std::vector<Layer*> layers;  // of the graph and of `folds`, in order
};

// `folds` is empty where there is nothing to gain. `graph` outlives the result.
FoldedGraph Fold(const NativeGraph& graph);

}  // namespace muster::engine::native
