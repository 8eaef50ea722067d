#include "muster/model/network.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "muster/model/model.h"

namespace muster::model {
namespace {

using engine::Initializer;
using engine::native::Activation;
using engine::native::GraphBuilder;
using engine::native::Node;
using features::ColumnKind;
using features::ColumnSpec;

Activation ParseActivation(const std::string& name) {
  if (name == "relu") return Activation::kRelu;
  if (name == "tanh") return Activation::kTanh;
  if (name == "sigmoid") return Activation::kSigmoid;
  return Activation::kNone;
}

// Gives each column that a part of the model uses an index in the batch, once.
class Request {
 public:
  explicit Request(features::FeatureRequest* request) : request_(request) {}
  int Dense(const std::string& column) { return Place(column, &dense_, &request_->dense); }
  int Categorical(const std::string& column) {
    return Place(column, &categorical_, &request_->categorical);
  }

 private:
  static int Place(const std::string& column, std::map<std::string, int>* places,
                   std::vector<std::string>* names) {
    const auto [entry, added] = places->emplace(column, static_cast<int>(names->size()));
    if (added) names->push_back(column);
    return entry->second;
  }

  features::FeatureRequest* request_;
  std::map<std::string, int> dense_;
  std::map<std::string, int> categorical_;
};

std::optional<features::GrowthSpec> GetGrowth(const ModelSpec& spec, const ColumnSpec& column) {
  const features::GrowthSpec* const growth = spec.features.GetGrowth(column);
  return growth != nullptr ? std::optional(*growth) : std::nullopt;
}

bool Lists(const std::vector<std::string>& columns, const std::string& name) {
  return std::ranges::find(columns, name) != columns.end();
}

class NetworkBuilder {
 public:
  NetworkBuilder(const ModelSpec& spec, features::FeatureRequest* request,
                 std::vector<optim::OptimizerSpec>* optimizers, GraphBuilder* graph)
      : spec_(spec), request_(request), optimizers_(*optimizers), graph_(*graph) {}

  Node Baseline() {
    return graph_.Linear({.bias_name = "baseline/bias",
                          .group = NewGroup(spec_.baseline->optimizer),
                          .name = "baseline",
                          .units = spec_.head.logits_dimension()});
  }

  Node Linear() {
    engine::native::LinearOptions options;
    options.group = NewGroup(spec_.linear->optimizer);
    options.units = spec_.head.logits_dimension();
    options.bias_name = "linear/linear_model/bias_weights";
    for (const std::string& name : spec_.linear->columns) {
      const ColumnSpec& column = *spec_.features.Find(name);
      const std::string variable = StrCat("linear/linear_model/", name, "/weights");
      if (column.is_categorical()) {
        options.tables.push_back({variable, request_.Categorical(name),
                                  spec_.features.NumIds(column), GetGrowth(spec_, column)});
      } else {
        options.dense.push_back({variable, request_.Dense(name), spec_.features.Width(column)});
      }
    }
    const Node linear = graph_.Linear(options);
    graph_.Watch(linear, "linear");
    return linear;
  }

  Node Fm() {
    const int group = NewGroup(spec_.fm->optimizer);
    AddInputs(spec_.fm->columns, group);
    int dimension = 0;
    for (const std::string& name : spec_.fm->columns) {
      dimension = std::max(dimension, spec_.features.Find(name)->dimension);
    }
    std::vector<Node> fields;
    for (const std::string& name : spec_.fm->columns) {
      if (spec_.features.Find(name)->kind == ColumnKind::kEmbedding) {
        fields.push_back(inputs_[name]);
        continue;
      }
      fields.push_back(graph_.Dense(
          inputs_[name],
          {.name = StrCat("fm/", name),
           .units = dimension,
           .bias = false,
           .kernel_initializer = {Initializer::Kind::kTruncatedNormal, spec_.fm->initial_stddev},
           .group = group}));
    }
    const Node pairs = graph_.FactorizationMachine(fields, "fm/FactorizationMachine");
    graph_.Watch(pairs, "fm");
    return pairs;
  }

  Node Dnn() {
    const DnnSpec& dnn = *spec_.dnn;
    const int group = NewGroup(dnn.optimizer);
    Node node = InputLayer("dnn", dnn, group);
    if (!spec_.cross) {
      node = Hidden("dnn", dnn, node, group);
    } else if (spec_.cross->parallel) {
      const Node crossed = Crossed(node, group);
      node = graph_.Concat({crossed, Hidden("dnn", dnn, node, group)});
    } else {
      node = Hidden("dnn", dnn, Crossed(node, group), group);
    }
    node = graph_.Dense(node, {.name = "dnn/logits",
                               .units = spec_.head.logits_dimension(),
                               .l1 = dnn.l1,
                               .l2 = dnn.l2,
                               .group = group});
    graph_.Watch(node, "dnn/logits");
    return node;
  }

  // The query's vector, the item's vector and, if the loss is corrected, the item's probability.
  Node Towers() {
    const TowersSpec& towers = *spec_.towers;
    std::vector<Node> parts = {Tower("query", towers.query), Tower("item", towers.item)};
    if (const std::string& name = spec_.head.sampling_probability; !name.empty()) {
      parts.push_back(graph_.DenseInput(request_.Dense(name), 1, LayerFolder(name)));
    }
    return graph_.Concat(parts);
  }

 private:
  Node Tower(const std::string& part, const DnnSpec& dnn) {
    const int group = NewGroup(dnn.optimizer);
    const Node node = graph_.Dense(Hidden(part, dnn, InputLayer(part, dnn, group), group),
                                   {.name = StrCat(part, "/vector"),
                                    .units = spec_.towers->dimension,
                                    .l1 = dnn.l1,
                                    .l2 = dnn.l2,
                                    .group = group});
    graph_.Watch(node, StrCat(part, "/vector"));
    return spec_.towers->normalize ? graph_.L2Normalize(node) : node;
  }

  int NewGroup(const optim::OptimizerSpec& optimizer) {
    optimizers_.push_back(optimizer);
    return static_cast<int>(optimizers_.size()) - 1;
  }

  // Returns the folder of the layer that gives a column.
  static std::string LayerFolder(const std::string& column) {
    return StrCat("dnn/input_from_feature_columns/input_layer/", column);
  }

  // Returns the columns whose embeddings are in the table.
  std::vector<std::string> GetEmbeddingColumns(const std::string& table) const {
    std::vector<std::string> users;
    for (const std::string& name : spec_.UsedColumns()) {
      const ColumnSpec& column = *spec_.features.Find(name);
      if (column.kind == ColumnKind::kEmbedding && EmbeddingVariable(column) == table) {
        users.push_back(name);
      }
    }
    return users;
  }

  // Makes nodes for those columns that have none yet. A table belongs to the first part that reads
  // it.
  void AddInputs(const std::vector<std::string>& columns, int group) {
    for (const std::string& name : columns) {
      if (inputs_.contains(name)) continue;
      const ColumnSpec& column = *spec_.features.Find(name);
      if (column.kind != ColumnKind::kEmbedding) {
        inputs_[name] = graph_.DenseInput(request_.Dense(name), spec_.features.Width(column),
                                          LayerFolder(name));
        continue;
      }
      const std::vector<std::string> users = GetEmbeddingColumns(EmbeddingVariable(column));
      const auto is_listed = [&users](const std::vector<std::string>& names) {
        return std::ranges::any_of(users,
                                   [&](const std::string& user) { return Lists(names, user); });
      };
      std::vector<engine::native::EmbeddingOptions> bags;
      for (const std::string& user : users) {
        bags.push_back(GetBag(*spec_.features.Find(user), group));
        for (const auto& [part, dnn] : spec_.DeepParts()) {
          if (!is_listed(dnn->columns)) continue;
          bags.back().l1 = std::max(bags.back().l1, dnn->embedding_l1);
          bags.back().l2 = std::max(bags.back().l2, dnn->embedding_l2);
        }
        if (spec_.fm && is_listed(spec_.fm->columns)) {
          bags.back().initializer.value = spec_.fm->initial_stddev;
        }
      }
      const std::vector<Node> outputs = graph_.SharedEmbeddingBags(bags);
      for (size_t i = 0; i < users.size(); ++i) inputs_[users[i]] = outputs[i];
    }
  }

  engine::native::EmbeddingOptions GetBag(const ColumnSpec& column, int group) {
    const ColumnSpec& ids = *spec_.features.Find(column.input);
    return {.name = EmbeddingVariable(column),
            .id_list = request_.Categorical(column.input),
            .rows = spec_.features.NumIds(ids),
            .growth = GetGrowth(spec_, ids),
            .dimension = column.dimension,
            .combiner = column.combiner,
            .pooling = column.pooling,
            .max_norm = column.max_norm,
            .initializer = {Initializer::Kind::kTruncatedNormal,
                            1.0 / std::sqrt(static_cast<double>(column.dimension))},
            .group = group,
            .layer = LayerFolder(column.name)};
  }

  Node Crossed(Node x0, int group) {
    Node node = x0;
    for (int i = 0; i < spec_.cross->layers; ++i) {
      const std::string name = StrCat("dnn/crosslayer_", i);
      node = graph_.Cross(x0, node,
                          {.name = name,
                           .rank = spec_.cross->rank,
                           .l1 = spec_.dnn->l1,
                           .l2 = spec_.dnn->l2,
                           .group = group});
      graph_.Watch(node, name);
    }
    return node;
  }

  // Concatenates the part's columns.
  Node InputLayer(const std::string& part, const DnnSpec& dnn, int group) {
    AddInputs(dnn.columns, group);
    std::vector<Node> columns;
    for (const std::string& name : dnn.columns) columns.push_back(inputs_[name]);
    const Node node = columns.size() == 1 ? columns[0] : graph_.Concat(columns);
    if (!dnn.input_batch_norm) return node;
    return graph_.BatchNorm(node, {.name = StrCat(part, "/input_batchnorm"),
                                   .group = group,
                                   .synchronized = dnn.synchronized_batch_norm});
  }

  Node Hidden(const std::string& part, const DnnSpec& dnn, Node node, int group) {
    engine::native::DenseOptions options;
    options.group = group;
    options.l1 = dnn.l1;
    options.l2 = dnn.l2;
    options.activation = ParseActivation(dnn.activation);
    for (size_t i = 0; i < dnn.hidden_units.size(); ++i) {
      options.name = StrCat(part, "/hiddenlayer_", i);
      options.units = dnn.hidden_units[i];
      node = graph_.Dense(node, options);
      if (dnn.dropout > 0) node = graph_.Dropout(node, dnn.dropout);
      if (dnn.batch_norm) {
        // The momentum of 0.999 is tf.estimator's.
        node = graph_.BatchNorm(node, {.name = StrCat(options.name, "/batchnorm_", i),
                                       .momentum = 0.999,
                                       .group = group,
                                       .synchronized = dnn.synchronized_batch_norm});
      }
      graph_.Watch(node, options.name);
    }
    return node;
  }

  const ModelSpec& spec_;
  Request request_;
  std::vector<optim::OptimizerSpec>& optimizers_;
  GraphBuilder& graph_;
  std::map<std::string, Node> inputs_;  // by column
};

}  // namespace

Node BuildNetwork(const ModelSpec& spec, features::FeatureRequest* request,
                  std::vector<optim::OptimizerSpec>* optimizers, GraphBuilder* graph) {
  NetworkBuilder network(spec, request, optimizers, graph);
  if (spec.baseline) return network.Baseline();
  if (spec.towers) return network.Towers();
  // The parts are built in the order in which their groups are numbered.
  Node logits = -1;
  const auto add = [&](Node part) { logits = logits < 0 ? part : graph->Add(logits, part); };
  if (spec.fm) add(network.Fm());
  if (spec.dnn) add(network.Dnn());
  if (spec.linear) add(network.Linear());
  return logits;
}

}  // namespace muster::model
