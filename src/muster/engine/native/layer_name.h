// Names of layers and of their operations (LayerInfo), as TensorBoard's graph shows them.
#pragma once

#include <string>
#include <vector>

#include "muster/engine/engine.h"
#include "muster/engine/native/graph.h"

namespace muster::engine::native {

// Returns "FOLDER/OP", or "OP" if `folder` is empty.
std::string LayerName(const std::string& folder, const std::string& op);
// Puts `op` into the folder of `name`: "a/OP" for "a/table".
std::string GetNameInFolder(const std::string& name, const std::string& op);
// Puts `op` into the folder of the layer that gives `node`, infos[node].
std::string NameBeside(const std::vector<LayerInfo>& infos, Node node, const std::string& op);
// Puts `op` into the deepest folder that contains all of `parts`, which is not empty.
std::string NameAbove(const std::vector<LayerInfo>& infos, const std::vector<Node>& parts,
                      const std::string& op);

// Returns the LayerInfo that EmbeddingBag and SharedEmbeddingBags add; `variable` is the table.
LayerInfo MakeBagInfo(const EmbeddingOptions& bag, int variable);

std::string GetName(Activation activation);        // "relu"
std::string GetName(features::Combiner combiner);  // "mean"
std::string GetName(features::Pooling pooling);    // "last"

}  // namespace muster::engine::native
