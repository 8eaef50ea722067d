// NativeGraph: the composed graph of GraphBuilder, in the form in which the engine runs it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/engine/native/layer.h"

namespace muster::engine::native {

struct NativeGraph {
  // A table and the id list that indexes it.
  struct TableUse {
    int variable = 0;
    int id_list = 0;
    bool distinct = true;  // it reads the list's entry of Step::distinct
  };
  struct DenseUse {
    int dense = 0;
    int width = 0;
  };

  // An embedding bag, and whether its rows are read unchanged (no largest norm).
  struct BagUse {
    size_t layer = 0;  // index in `layers`
    int variable = 0;
    int id_list = 0;
    const Tensor* output = nullptr;
    bool as_it_is = true;
  };
  struct DenseLayerUse {
    size_t layer = 0;  // index in `layers`
    const Tensor* input = nullptr;
    const Tensor* output = nullptr;
    Activation activation = Activation::kNone;
    int kernel = 0;
    int bias = -1;
  };

  struct WatchedTensor {
    std::string name;
    const Tensor* tensor = nullptr;
  };

  std::vector<VariableSpec> variables;
  std::vector<std::unique_ptr<Storage>> storages;
  std::vector<std::unique_ptr<Tensor>> tensors;
  std::vector<std::unique_ptr<Layer>> layers;  // each layer reads only what earlier layers write
  std::vector<TableUse> table_uses;
  std::vector<DenseUse> dense_uses;
  std::vector<BagUse> bag_uses;
  std::vector<DenseLayerUse> dense_layers;
  std::vector<LayerInfo> infos;  // by node
  std::vector<WatchedTensor> watched;
  const Tensor* logits = nullptr;  // its storage has ld == width
};

std::unique_ptr<Engine> NewNativeEngine(NativeGraph graph, std::unique_ptr<Head> head,
                                        const EngineOptions& options);

}  // namespace muster::engine::native
