#include "muster/engine/native/graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/engine/native/graph_state.h"
#include "muster/engine/native/layer_name.h"
#include "muster/math/gemm.h"

namespace muster::engine::native {

GraphBuilder::GraphBuilder() : state_(std::make_unique<State>()) {}
GraphBuilder::~GraphBuilder() = default;
GraphBuilder::GraphBuilder(GraphBuilder&&) noexcept = default;

Node GraphBuilder::DenseInput(int dense, int width, const std::string& name) {
  const std::string made_by = StrCat("DenseInput ", dense);
  if (!state_->UseDense(dense, width, made_by)) return -1;
  Tensor* const output = state_->NewTensor(width, false, made_by);
  state_->graph.layers.push_back(NewDenseInputLayer(dense, output));
  return state_->LastNode({.name = name, .op = "DenseInput", .dense = {dense}});
}

Node GraphBuilder::EmbeddingBag(const EmbeddingOptions& options) {
  return SharedEmbeddingBags({options}).front();
}

std::vector<Node> GraphBuilder::SharedEmbeddingBags(const std::vector<EmbeddingOptions>& bags) {
  if (bags.empty()) {
    state_->Fail("SharedEmbeddingBags: no bags");
    return {};
  }
  const EmbeddingOptions& table = bags.front();
  const int variable = state_->NewTable(table.name, table.rows, table.growth, table.dimension,
                                        table.initializer, table.group);
  if (!(table.max_norm >= 0)) state_->Fail(StrCat(table.name, ": max_norm is negative"));
  auto& layers = state_->graph.layers;
  std::vector<Node> nodes;
  std::vector<const Tensor*> outputs;
  for (const EmbeddingOptions& bag : bags) {
    if (bag.name != table.name || bag.rows != table.rows || bag.growth != table.growth ||
        bag.dimension != table.dimension || bag.max_norm != table.max_norm || bag.l1 != table.l1 ||
        bag.l2 != table.l2 || bag.group != table.group) {
      state_->Fail(StrCat(table.name, ": bags that share it give it different shapes"));
    }
    // If a table has several bags, it finds the distinct rows of all of them itself.
    state_->UseTable(variable, bag.id_list, /*distinct=*/bags.size() == 1);
    outputs.push_back(state_->NewTensor(std::max(table.dimension, 1), true, table.name));
    nodes.push_back(state_->LastNode(MakeBagInfo(bag, variable)));
    state_->graph.bag_uses.push_back(
        {layers.size(), variable, bag.id_list, outputs.back(), table.max_norm == 0});
  }
  layers.push_back(NewEmbeddingLayer(bags, variable, static_cast<int>(layers.size()), outputs));
  return nodes;
}

Node GraphBuilder::Concat(const std::vector<Node>& parts) {
  if (parts.empty()) {
    state_->Fail("Concat: no parts");
    return -1;
  }
  std::vector<Tensor*> tensors;
  for (const Node part : parts) {
    State::NodeFacts* const facts = state_->Use(part, "Concat");
    if (facts == nullptr) return -1;
    Tensor* const tensor = facts->tensor;
    const bool is_shared =
        std::any_of(tensors.begin(), tensors.end(),
                    [tensor](const Tensor* other) { return other->storage == tensor->storage; });
    if (!OwnsStorage(*tensor) || is_shared) {
      state_->Fail(StrCat("Concat: ", facts->made_by, " is in a Concat already"));
      return -1;
    }
    tensors.push_back(tensor);
  }
  int width = 0;
  for (const Tensor* tensor : tensors) width += tensor->width;
  Tensor* const whole = state_->NewTensor(width, false, "Concat");
  int column = 0;
  for (Tensor* part : tensors) {
    if (part->needs_gradient()) {
      if (!whole->needs_gradient()) whole->gradient_begin = column + part->gradient_begin;
      whole->gradient_end = column + part->gradient_end;
    }
    // Everything that lay in the part's storage, its own parts included, moves to the new storage.
    Storage* const old = part->storage;
    whole->storage->readers += old->readers;
    for (const auto& tensor : state_->graph.tensors) {
      if (tensor->storage != old) continue;
      tensor->storage = whole->storage;
      tensor->column += column;
    }
    column += part->width;
  }
  return state_->LastNode(
      {.name = NameAbove(state_->graph.infos, parts, "Concat"), .op = "Concat", .layers = parts});
}

Node GraphBuilder::Dense(Node input, const DenseOptions& options) {
  State::NodeFacts* const facts = state_->Read(input, options.name);
  if (options.units < 1) state_->Fail(StrCat(options.name, ": ", options.units, " units"));
  if (options.l1 < 0 || options.l2 < 0) {
    state_->Fail(
        StrCat(options.name, ": l1 ", options.l1, " and l2 ", options.l2, " may not be negative"));
  }
  if (facts == nullptr || options.units < 1) return -1;
  facts->read_by_dense = true;
  const int kernel = state_->NewVariable(options.name + "/kernel", VariableKind::kDense,
                                         {facts->tensor->width, options.units},
                                         options.kernel_initializer, options.group);
  const int bias = options.bias ? state_->NewVariable(options.name + "/bias", VariableKind::kDense,
                                                      {options.units}, {}, options.group)
                                : -1;
  Tensor* const output = state_->NewTensor(options.units, true, options.name);
  state_->nodes.back().is_dense_relu = options.activation == Activation::kRelu;
  auto& layers = state_->graph.layers;
  state_->graph.dense_layers.push_back(
      {layers.size(), facts->tensor, output, options.activation, kernel, bias});
  layers.push_back(NewDenseLayer(facts->tensor, output, options, kernel, bias));
  LayerInfo info{.name = LayerName(options.name, "Dense"),
                 .op = "Dense",
                 .layers = {input},
                 .variables = {kernel},
                 .attributes = {{"activation", GetName(options.activation)}}};
  if (bias >= 0) info.variables.push_back(bias);
  return state_->LastNode(std::move(info));
}

Node GraphBuilder::Linear(const LinearOptions& options) {
  if (options.tables.empty() && options.dense.empty() && options.bias_name.empty()) {
    state_->Fail("Linear: no tables, no columns and no bias");
  }
  if (options.units < 1) {
    state_->Fail(StrCat("Linear: ", options.units, " units"));
    return -1;
  }
  LinearVariables variables;
  LayerInfo info{.name = LayerName(options.name, "Linear"), .op = "Linear"};
  for (const auto& table : options.tables) {
    info.id_lists.push_back(table.id_list);
    const int variable =
        state_->NewTable(table.name, table.rows, table.growth, options.units, {}, options.group);
    state_->UseTable(variable, table.id_list, /*distinct=*/true);
    variables.tables.push_back(variable);
  }
  for (const auto& dense : options.dense) {
    state_->UseDense(dense.dense, dense.width, dense.name);
    info.dense.push_back(dense.dense);
    variables.dense.push_back(state_->NewVariable(dense.name, VariableKind::kDense,
                                                  {dense.width, options.units}, {}, options.group));
  }
  if (!options.bias_name.empty()) {
    variables.bias = state_->NewVariable(options.bias_name, VariableKind::kDense, {options.units},
                                         {}, options.group);
  }
  info.variables = variables.tables;
  info.variables.insert(info.variables.end(), variables.dense.begin(), variables.dense.end());
  if (variables.bias >= 0) info.variables.push_back(variables.bias);
  Tensor* const output = state_->NewTensor(options.units, true, "Linear");
  state_->graph.layers.push_back(NewLinearLayer(options, std::move(variables), output));
  return state_->LastNode(std::move(info));
}

Node GraphBuilder::BatchNorm(Node input, const BatchNormOptions& options) {
  State::NodeFacts* const facts = state_->Read(input, options.name);
  if (facts == nullptr) return -1;
  if (options.epsilon <= 0 || options.momentum < 0 || options.momentum >= 1) {
    state_->Fail(StrCat(options.name, ": epsilon ", options.epsilon, " and momentum ",
                        options.momentum, "; they must be above 0 and in [0, 1)"));
  }
  const int width = facts->tensor->width;
  const auto variable = [&](const char* name, VariableKind kind, double value) {
    return state_->NewVariable(StrCat(options.name, "/", name), kind, {width},
                               {Initializer::Kind::kConstant, value}, options.group,
                               kind == VariableKind::kState ? options.momentum : 0);
  };
  BatchNormVariables variables;
  variables.gamma = variable("gamma", VariableKind::kDense, 1);
  variables.beta = variable("beta", VariableKind::kDense, 0);
  variables.moving_mean = variable("moving_mean", VariableKind::kState, 0);
  variables.moving_variance = variable("moving_variance", VariableKind::kState, 1);
  Tensor* const output = state_->NewTensor(width, true, options.name);
  state_->graph.layers.push_back(NewBatchNormLayer(facts->tensor, output, options, variables));
  return state_->LastNode({.name = LayerName(options.name, "BatchNorm"),
                           .op = "BatchNorm",
                           .layers = {input},
                           .variables = {variables.gamma, variables.beta, variables.moving_mean,
                                         variables.moving_variance}});
}

Node GraphBuilder::Dropout(Node input, double rate) {
  State::NodeFacts* const facts = state_->Read(input, "Dropout");
  if (!(rate >= 0 && rate < 1)) {
    state_->Fail(StrCat("Dropout: rate ", rate, " is not in [0, 1)"));
    return -1;
  }
  if (facts == nullptr) return -1;
  const Tensor* const from = facts->tensor;
  Tensor* const output = state_->NewTensor(from->width, from->needs_gradient(), "Dropout");
  auto& layers = state_->graph.layers;
  layers.push_back(NewDropoutLayer(from, output, rate, static_cast<int>(layers.size())));
  return state_->LastNode({.name = NameBeside(state_->graph.infos, input, "Dropout"),
                           .op = "Dropout",
                           .layers = {input},
                           .attributes = {{"rate", StrCat(rate)}}});
}

Node GraphBuilder::Activate(Node input, Activation activation) {
  State::NodeFacts* const facts = state_->Read(input, "Activate");
  if (facts == nullptr) return -1;
  const Tensor* const from = facts->tensor;
  Tensor* const output = state_->NewTensor(from->width, from->needs_gradient(), "Activate");
  state_->graph.layers.push_back(NewActivationLayer(from, output, activation));
  return state_->LastNode({.name = NameBeside(state_->graph.infos, input, "Activation"),
                           .op = "Activation",
                           .layers = {input},
                           .attributes = {{"activation", GetName(activation)}}});
}

Node GraphBuilder::Add(Node a, Node b) {
  State::NodeFacts* const left = state_->Read(a, "Add");
  State::NodeFacts* const right = state_->Read(b, "Add");
  if (left == nullptr || right == nullptr) return -1;
  if (left->tensor->width != right->tensor->width) {
    state_->Fail(StrCat("Add: ", left->made_by, " has ", left->tensor->width, " columns, ",
                        right->made_by, " has ", right->tensor->width));
    return -1;
  }
  const bool needs_gradient = left->tensor->needs_gradient() || right->tensor->needs_gradient();
  Tensor* const output = state_->NewTensor(left->tensor->width, needs_gradient, "Add");
  state_->graph.layers.push_back(NewAddLayer(left->tensor, right->tensor, output));
  return state_->LastNode(
      {.name = NameAbove(state_->graph.infos, {a, b}, "Add"), .op = "Add", .layers = {a, b}});
}

Node GraphBuilder::L2Normalize(Node input) {
  State::NodeFacts* const facts = state_->Read(input, "L2Normalize");
  if (facts == nullptr) return -1;
  const Tensor* const from = facts->tensor;
  Tensor* const output = state_->NewTensor(from->width, from->needs_gradient(), "L2Normalize");
  state_->graph.layers.push_back(NewL2NormalizeLayer(from, output));
  return state_->LastNode({.name = NameBeside(state_->graph.infos, input, "L2Normalize"),
                           .op = "L2Normalize",
                           .layers = {input}});
}

Node GraphBuilder::FactorizationMachine(const std::vector<Node>& fields, const std::string& name) {
  if (fields.size() < 2) {
    state_->Fail(StrCat(name, ": ", fields.size(), " fields; pairs need two"));
    return -1;
  }
  std::vector<const Tensor*> tensors;
  for (const Node field : fields) {
    State::NodeFacts* const facts = state_->Read(field, name);
    if (facts == nullptr) return -1;
    tensors.push_back(facts->tensor);
    if (tensors.back()->width == tensors.front()->width) continue;
    state_->Fail(StrCat(name, ": ", facts->made_by, " has ", tensors.back()->width,
                        " columns, the first field has ", tensors.front()->width));
    return -1;
  }
  Tensor* const output = state_->NewTensor(1, true, name);
  state_->graph.layers.push_back(NewFactorizationMachineLayer(std::move(tensors), output));
  return state_->LastNode({.name = name, .op = "FactorizationMachine", .layers = fields});
}

Node GraphBuilder::Cross(Node x0, Node x, const CrossOptions& options) {
  State::NodeFacts* const first = state_->Read(x0, options.name);
  State::NodeFacts* const last = state_->Read(x, options.name);
  if (first == nullptr || last == nullptr) return -1;
  const Tensor* const start = first->tensor;
  const Tensor* const input = last->tensor;
  const int width = start->width;
  if (input->width != width) {
    state_->Fail(StrCat(options.name, ": ", last->made_by, " has ", input->width,
                        " columns, the network's input has ", width));
    return -1;
  }
  if (options.rank < 0) state_->Fail(StrCat(options.name, ": rank ", options.rank));
  DenseOptions dense{.name = options.name,
                     .units = width,
                     .l1 = options.l1,
                     .l2 = options.l2,
                     .group = options.group};
  Node below = x;
  if (options.rank > 0) {
    dense.name = StrCat(options.name, "/u");
    DenseOptions narrow = dense;
    narrow.name = StrCat(options.name, "/v");
    narrow.units = options.rank;
    narrow.bias = false;
    below = Dense(x, narrow);
  }
  const Node product = Dense(below, dense);
  State::NodeFacts* const projected = state_->Read(product, options.name);
  if (projected == nullptr) return -1;
  Tensor* const output = state_->NewTensor(width, true, options.name);
  state_->graph.layers.push_back(NewCrossLayer(start, projected->tensor, input, output));
  return state_->LastNode({.name = LayerName(options.name, "Cross"),
                           .op = "Cross",
                           .layers = {x0, product, x},
                           .attributes = {{"rank", StrCat(options.rank)}}});
}

void GraphBuilder::Watch(Node node, const std::string& name) {
  // A node of -1 comes from a call that has already failed.
  if (node < 0 || std::cmp_greater_equal(node, state_->nodes.size())) return;
  state_->graph.watched.push_back({name, state_->nodes[static_cast<size_t>(node)].tensor});
}

absl::StatusOr<std::unique_ptr<Engine>> GraphBuilder::Finish(Node logits,
                                                             std::unique_ptr<Head> head,
                                                             EngineOptions options) && {
  State& state = *state_;
  state.CheckFinish(logits, head.get(), options);
  if (!state.errors.empty()) {
    return absl::InvalidArgumentError(
        StrCat("composing the model: ", absl::StrJoin(state.errors, "; ")));
  }
  const bool wants_bf16 =
      options.training == Precision::kBfloat16 || options.inference == Precision::kBfloat16;
  if (wants_bf16 && !math::SupportsBf16()) {
    return absl::FailedPreconditionError(StrCat(
        "precision bf16 needs a processor with AMX (amx_bf16) and Linux 5.16 or newer; this ",
        "one offers ", math::ActiveKernels().name, " at most; use fp32 instead"));
  }
  state.Arrange(state.nodes[static_cast<size_t>(logits)].tensor);
  return NewNativeEngine(std::move(state.graph), std::move(head), options);
}

}  // namespace muster::engine::native
