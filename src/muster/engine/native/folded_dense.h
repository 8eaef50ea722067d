// FoldedDense: the output of a dense layer over embeddings, for weights that do not change. The
// product of each table row with its rows of the kernel is computed once; the output for a row of
// the batch is then
//   y = f(bias + sum over tables of (table W_table)[id] + x' W')
// where x' are the input columns that come from no table. It needs tables whose rows are read
// unchanged, with at most one id per row, and small enough that their products stay in the caches.
// Sums are taken in another order than in DenseLayer; they depend on the row alone.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "muster/engine/native/layer.h"
#include "muster/engine/native/native_graph.h"

namespace muster::engine::native {

// A layer that runs only in Predict, in place of others.
class FoldedDense : public Layer {
 public:
  // Computes the products anew. Called on the thread that owns the engine.
  virtual void Freeze(std::span<const VariableView> weights) = 0;
  // Whether it can read the batch's id lists.
  virtual bool Fits(const features::FeatureBatch& batch) const = 0;
};

// The graph's layers as Predict may run them while the weights do not change.
struct FoldedGraph {
  std::vector<std::unique_ptr<FoldedDense>> folds;
  std::vector<Layer*> layers;  // layers of the graph and of `folds`, in order
};

// `folds` is empty if folding gains nothing. `graph` outlives the result.
FoldedGraph Fold(const NativeGraph& graph);

}  // namespace muster::engine::native
