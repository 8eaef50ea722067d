#include "muster/engine/native/layer_name.h"

#include "muster/base/strings.h"

namespace muster::engine::native {
namespace {

// Returns "a/b" for "a/b/c", "" for "c".
std::string GetFolder(const std::string& name) {
  const size_t slash = name.rfind('/');
  return slash == std::string::npos ? "" : name.substr(0, slash);
}

const std::string& NameOfNode(const std::vector<LayerInfo>& infos, Node node) {
  return infos[static_cast<size_t>(node)].name;
}

}  // namespace

std::string LayerName(const std::string& folder, const std::string& op) {
  return folder.empty() ? op : StrCat(folder, "/", op);
}

std::string GetNameInFolder(const std::string& name, const std::string& op) {
  return LayerName(GetFolder(name), op);
}

std::string NameBeside(const std::vector<LayerInfo>& infos, Node node, const std::string& op) {
  return GetNameInFolder(NameOfNode(infos, node), op);
}

std::string NameAbove(const std::vector<LayerInfo>& infos, const std::vector<Node>& parts,
                      const std::string& op) {
  std::string folder = GetFolder(NameOfNode(infos, parts.front()));
  for (const Node part : parts) {
    while (!folder.empty() && !NameOfNode(infos, part).starts_with(folder + "/")) {
      folder = GetFolder(folder);
    }
  }
  return LayerName(folder, op);
}

LayerInfo MakeBagInfo(const EmbeddingOptions& bag, int variable) {
  const bool pools = bag.pooling != features::Pooling::kNone;
  return {.name = bag.layer.empty() ? GetNameInFolder(bag.name, "EmbeddingBag")
                                    : LayerName(bag.layer, "EmbeddingBag"),
          .op = "EmbeddingBag",
          .id_lists = {bag.id_list},
          .variables = {variable},
          .attributes = {{pools ? "pooling" : "combiner",
                          pools ? GetName(bag.pooling) : GetName(bag.combiner)}}};
}

std::string GetName(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return "none";
    case Activation::kRelu:
      return "relu";
    case Activation::kTanh:
      return "tanh";
    case Activation::kSigmoid:
      return "sigmoid";
  }
  return "";
}

std::string GetName(features::Combiner combiner) {
  switch (combiner) {
    case features::Combiner::kSum:
      return "sum";
    case features::Combiner::kMean:
      return "mean";
    case features::Combiner::kSqrtN:
      return "sqrtn";
  }
  return "";
}

std::string GetName(features::Pooling pooling) {
  switch (pooling) {
    case features::Pooling::kNone:
      return "none";
    case features::Pooling::kSum:
      return "sum";
    case features::Pooling::kMean:
      return "mean";
    case features::Pooling::kSqrtN:
      return "sqrtn";
    case features::Pooling::kMax:
      return "max";
    case features::Pooling::kLast:
      return "last";
  }
  return "";
}

}  // namespace muster::engine::native
