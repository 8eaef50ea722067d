// GraphBuilder::State: the graph that a GraphBuilder has composed so far, and the errors in its
// calls. Internal to this layer.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"

#include "muster/engine/native/graph.h"
#include "muster/engine/native/native_graph.h"

namespace muster::engine::native {

// False if the tensor is a part of a Concat.
inline bool OwnsStorage(const Tensor& tensor) { return tensor.width == tensor.storage->width; }

struct GraphBuilder::State {
  // What the builder knows about a node besides its tensor.
  struct NodeFacts {
    Tensor* tensor = nullptr;
    std::string made_by;  // the layer's name, for messages
    bool used = false;
    bool is_dense_relu = false;
    bool read_by_dense = false;
  };

  NativeGraph graph;
  std::deque<NodeFacts> nodes;
  std::vector<std::string> errors;
  absl::flat_hash_set<std::string> names;  // of variables

  void Fail(std::string message) { errors.push_back(std::move(message)); }

  // Returns the node as an input of `reader`, or null (and records an error).
  NodeFacts* Use(Node node, const std::string& reader);
  // As Use, and counts `reader` as a reader of the node's storage.
  NodeFacts* Read(Node node, const std::string& reader);

  // Adds a node with a storage of this width.
  Tensor* NewTensor(int width, bool needs_gradient, std::string made_by);
  // Returns the last node, which `info` describes: infos[i] is the layer that gives node i.
  Node LastNode(LayerInfo info);

  // Return the index of the new variable.
  int NewVariable(const std::string& name, VariableKind kind, std::vector<int64_t> shape,
                  Initializer initializer, int group, double momentum = 0);
  int NewTable(const std::string& name, int64_t rows,
               const std::optional<features::GrowthSpec>& growth, int dimension,
               Initializer initializer, int group);
  // Record that a layer reads a table by an id list, or a dense column.
  void UseTable(int variable, int id_list, bool distinct);
  bool UseDense(int dense, int width, const std::string& reader);

  // Records the errors that show when the graph is complete.
  void CheckFinish(Node logits, const Head* head, const EngineOptions& options);
  // Sets what depends on the complete graph, and removes unused storages.
  void Arrange(Tensor* logits);
};

}  // namespace muster::engine::native
