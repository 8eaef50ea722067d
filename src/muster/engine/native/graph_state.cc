#include "muster/engine/native/graph_state.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace muster::engine::native {
namespace {

// Rows begin on cache lines if that costs little memory.
int64_t LeadingDimension(int64_t width) {
  if (width >= 16) return (width + 15) / 16 * 16;
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(width)));
}

}  // namespace

GraphBuilder::State::NodeFacts* GraphBuilder::State::Use(Node node, const std::string& reader) {
  if (node < 0 || std::cmp_greater_equal(node, nodes.size())) {
    // A node of -1 comes from a call that has already failed.
    if (node != -1 || errors.empty()) Fail(StrCat(reader, ": there is no node ", node));
    return nullptr;
  }
  nodes[static_cast<size_t>(node)].used = true;
  return &nodes[static_cast<size_t>(node)];
}

GraphBuilder::State::NodeFacts* GraphBuilder::State::Read(Node node, const std::string& reader) {
  State::NodeFacts* const facts = Use(node, reader);
  if (facts != nullptr) ++facts->tensor->storage->readers;
  return facts;
}

Tensor* GraphBuilder::State::NewTensor(int width, bool needs_gradient, std::string made_by) {
  graph.storages.push_back(std::make_unique<Storage>());
  Storage* const storage = graph.storages.back().get();
  storage->width = width;
  storage->ld = LeadingDimension(width);
  graph.tensors.push_back(std::make_unique<Tensor>());
  Tensor* const tensor = graph.tensors.back().get();
  *tensor = {.storage = storage, .width = width, .gradient_end = needs_gradient ? width : 0};
  nodes.push_back({.tensor = tensor, .made_by = std::move(made_by)});
  return tensor;
}

Node GraphBuilder::State::LastNode(LayerInfo info) {
  info.width = nodes.back().tensor->width;
  graph.infos.push_back(std::move(info));
  return static_cast<Node>(nodes.size()) - 1;
}

int GraphBuilder::State::NewVariable(const std::string& name, VariableKind kind,
                                     std::vector<int64_t> shape, Initializer initializer, int group,
                                     double momentum) {
  if (name.empty()) Fail("a variable has no name");
  if (!names.insert(name).second) Fail(StrCat("the variable name ", name, " is given twice"));
  graph.variables.push_back({.name = name,
                             .kind = kind,
                             .shape = std::move(shape),
                             .initializer = initializer,
                             .group = group,
                             .momentum = momentum});
  return static_cast<int>(graph.variables.size()) - 1;
}

int GraphBuilder::State::NewTable(const std::string& name, int64_t rows,
                                  const std::optional<features::GrowthSpec>& growth, int dimension,
                                  Initializer initializer, int group) {
  if (growth ? rows != 0 : rows < 1 || rows > INT32_MAX) {
    Fail(StrCat(name, ": ", rows, " rows; a table has 1 to ", INT32_MAX));
  }
  if (dimension < 1) Fail(StrCat(name, ": dimension ", dimension, " is less than 1"));
  const int table = NewVariable(name, VariableKind::kTable, {rows, dimension}, initializer, group);
  graph.variables.back().growth = growth;
  return table;
}

void GraphBuilder::State::UseTable(int variable, int id_list, bool distinct) {
  if (id_list < 0) {
    Fail(StrCat(graph.variables[static_cast<size_t>(variable)].name, ": id list ", id_list,
                " is negative"));
  }
  graph.table_uses.push_back({variable, id_list, distinct});
}

bool GraphBuilder::State::UseDense(int dense, int width, const std::string& reader) {
  if (dense < 0 || width < 1) {
    Fail(StrCat(reader, ": dense column ", dense, " of width ", width));
    return false;
  }
  graph.dense_uses.push_back({dense, width});
  return true;
}

void GraphBuilder::State::CheckFinish(Node logits, const Head* head, const EngineOptions& options) {
  if (head == nullptr) Fail("no head");
  if (options.threads < 1) Fail(StrCat(options.threads, " threads"));
  State::NodeFacts* const facts = Read(logits, "the logits");
  if (facts != nullptr && head != nullptr) {
    const Tensor& tensor = *facts->tensor;
    if (tensor.width != head->logits_dimension()) {
      Fail(StrCat("the logits have ", tensor.width, " columns, the head needs ",
                  head->logits_dimension()));
    }
    if (tensor.storage->readers > 1 || !OwnsStorage(tensor)) {
      Fail("the logits are an input of another layer");
    }
  }
  for (const NodeFacts& node : nodes) {
    if (!node.used) Fail(StrCat(node.made_by, " is not used"));
  }
}

void GraphBuilder::State::Arrange(Tensor* logits) {
  logits->storage->ld = logits->width;
  graph.logits = logits;
  for (const NodeFacts& node : nodes) {
    Tensor& tensor = *node.tensor;
    // If the node is a part of a Concat, its reader reads the Concat, not the node.
    tensor.reader_masks = node.is_dense_relu && node.read_by_dense && tensor.storage->readers == 1;
  }
  std::erase_if(graph.storages, [this](const auto& storage) {
    return std::none_of(graph.tensors.begin(), graph.tensors.end(),
                        [&](const auto& tensor) { return tensor->storage == storage.get(); });
  });
}

}  // namespace muster::engine::native
