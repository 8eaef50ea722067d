#include "muster/model/model.h"

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "muster/engine/heads/head.h"
#include "muster/engine/native/graph.h"
#include "muster/model/exported_model.h"
#include "muster/model/keras/exported_columns.h"

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

// Gives each column that a part of the model uses its place in the batch, once.
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

Node BuildLinear(const ModelSpec& spec, int group, Request* request, GraphBuilder* graph) {
  engine::native::LinearOptions options;
  options.group = group;
  options.units = spec.head.logits_dimension();
  options.bias_name = "linear/linear_model/bias_weights";
  for (const std::string& name : spec.linear->columns) {
    const ColumnSpec& column = *spec.features.Find(name);
    const std::string variable = StrCat("linear/linear_model/", name, "/weights");
    if (column.is_categorical()) {
      options.tables.push_back({variable, request->Categorical(name), spec.features.NumIds(column),
                                GetGrowth(spec, column)});
    } else {
      options.dense.push_back({variable, request->Dense(name), spec.features.Width(column)});
    }
  }
  return graph->Linear(options);
}

// Of the layer that gives a column of the dnn part.
std::string LayerFolder(const std::string& column) {
  return StrCat("dnn/input_from_feature_columns/input_layer/", column);
}

engine::native::EmbeddingOptions ParseOptions(const ModelSpec& spec, const ColumnSpec& column,
                                              int group, Request* request) {
  return {.name = EmbeddingVariable(column),
          .id_list = request->Categorical(column.input),
          .rows = spec.features.NumIds(*spec.features.Find(column.input)),
          .growth = GetGrowth(spec, *spec.features.Find(column.input)),
          .dimension = column.dimension,
          .combiner = column.combiner,
          .pooling = column.pooling,
          .max_norm = column.max_norm,
          .l1 = spec.dnn->embedding_l1,
          .l2 = spec.dnn->embedding_l2,
          .initializer = {Initializer::Kind::kTruncatedNormal,
                          1.0 / std::sqrt(static_cast<double>(column.dimension))},
          .group = group,
          .layer = LayerFolder(column.name)};
}

Node BuildInputs(const ModelSpec& spec, int group, Request* request, GraphBuilder* graph) {
  std::map<std::string, Node> nodes;  // by column
  for (const std::string& name : spec.dnn->columns) {
    if (nodes.contains(name)) continue;
    const ColumnSpec& column = *spec.features.Find(name);
    if (column.kind != ColumnKind::kEmbedding) {
      nodes[name] =
          graph->DenseInput(request->Dense(name), spec.features.Width(column), LayerFolder(name));
      continue;
    }
    // With the columns that share its table.
    std::vector<std::string> users;
    std::vector<engine::native::EmbeddingOptions> bags;
    for (const std::string& other_name : spec.dnn->columns) {
      const ColumnSpec& other = *spec.features.Find(other_name);
      if (other.kind != ColumnKind::kEmbedding) continue;
      if (EmbeddingVariable(other) != EmbeddingVariable(column)) continue;
      users.push_back(other_name);
      bags.push_back(ParseOptions(spec, other, group, request));
    }
    const std::vector<Node> outputs = graph->SharedEmbeddingBags(bags);
    for (size_t i = 0; i < users.size(); ++i) nodes[users[i]] = outputs[i];
  }
  std::vector<Node> parts;
  for (const std::string& name : spec.dnn->columns) parts.push_back(nodes[name]);
  return parts.size() == 1 ? parts[0] : graph->Concat(parts);
}

Node BuildDnn(const ModelSpec& spec, int group, Request* request, GraphBuilder* graph) {
  const DnnSpec& dnn = *spec.dnn;
  Node node = BuildInputs(spec, group, request, graph);
  if (dnn.input_batch_norm) {
    node = graph->BatchNorm(node, {.name = "dnn/input_batchnorm",
                                   .group = group,
                                   .synchronized = dnn.synchronized_batch_norm});
  }
  engine::native::DenseOptions options;
  options.group = group;
  options.l1 = dnn.l1;
  options.l2 = dnn.l2;
  options.activation = ParseActivation(dnn.activation);
  for (size_t i = 0; i < dnn.hidden_units.size(); ++i) {
    options.name = StrCat("dnn/hiddenlayer_", i);
    options.units = dnn.hidden_units[i];
    node = graph->Dense(node, options);
    if (dnn.dropout > 0) node = graph->Dropout(node, dnn.dropout);
    if (dnn.batch_norm) {
      // momentum 0.999 is tf.estimator's.
      node = graph->BatchNorm(node, {.name = StrCat(options.name, "/batchnorm_", i),
                                     .momentum = 0.999,
                                     .group = group,
                                     .synchronized = dnn.synchronized_batch_norm});
    }
    graph->Watch(node, options.name);
  }
  options.name = "dnn/logits";
  options.units = spec.head.logits_dimension();
  options.activation = Activation::kNone;
  node = graph->Dense(node, options);
  graph->Watch(node, options.name);
  return node;
}

}  // namespace

std::string EmbeddingVariable(const ColumnSpec& column) {
  if (!column.shared.empty()) return column.shared;
  return StrCat(LayerFolder(column.name), "/embedding_weights");
}

absl::StatusOr<Model> BuildModel(const ModelSpec& spec, const BuildOptions& build) {
  if (spec.exported) return BuildExported(spec, build);
  const engine::native::EngineOptions& options = build.native;
  const bool wants_bf16 = options.training == engine::Precision::kBfloat16 ||
                          options.inference == engine::Precision::kBfloat16;
  if (wants_bf16 && !spec.dnn) {
    return absl::InvalidArgumentError(
        "precision bf16 is for the layers of a dnn part; a linear model has none: say fp32");
  }
  Model model;
  model.spec = spec;
  Request request(&model.request);
  GraphBuilder graph;
  Node logits = -1;
  if (spec.baseline) {
    logits = graph.Linear({.bias_name = "baseline/bias",
                           .group = 0,
                           .name = "baseline",
                           .units = spec.head.logits_dimension()});
    model.optimizer_specs.push_back(spec.baseline->optimizer);
  }
  if (spec.dnn) {
    logits = BuildDnn(spec, static_cast<int>(model.optimizer_specs.size()), &request, &graph);
    model.optimizer_specs.push_back(spec.dnn->optimizer);
  }
  if (spec.linear) {
    const Node linear =
        BuildLinear(spec, static_cast<int>(model.optimizer_specs.size()), &request, &graph);
    graph.Watch(linear, "linear");
    model.optimizer_specs.push_back(spec.linear->optimizer);
    logits = spec.dnn ? graph.Add(logits, linear) : linear;
  }
  for (const optim::OptimizerSpec& optimizer : model.optimizer_specs) {
    MUSTER_ASSIGN_OR_RETURN(auto built, optim::NewOptimizer(optimizer));
    model.optimizers.push_back(std::move(built));
  }
  MUSTER_ASSIGN_OR_RETURN(model.engine,
                          std::move(graph).Finish(logits, engine::NewHead(spec.head), options));
  return model;
}

absl::StatusOr<RowTransform> NewRowTransform(const Model& model, bool with_labels, bool with_key) {
  RowTransform rows;
  if (model.spec.exported) {
    features::RawColumnSpecs columns = GetRawColumns(*model.spec.exported);
    MUSTER_ASSIGN_OR_RETURN(rows.used.schema, features::RawSchema(columns, with_labels, with_key));
    rows.used.label = model.spec.features.label;
    if (with_key) rows.used.key = model.spec.features.key;
    MUSTER_ASSIGN_OR_RETURN(rows.transform,
                            features::NewRawTransform(std::move(columns), rows.used.schema));
    return rows;
  }
  rows.used = UsedFeatures(model.spec.features, model.request, with_labels, with_key);
  MUSTER_ASSIGN_OR_RETURN(rows.transform,
                          features::FeatureTransform::Create(rows.used, model.request));
  return rows;
}

absl::StatusOr<std::unique_ptr<metrics::Metrics>> NewMetrics(const Model& model,
                                                             const metrics::MetricsSpec& spec) {
  if (model.spec.exported) return NewExportedMetrics(model);
  return metrics::NewMetrics(model.spec.head, spec, model.spec.features.label.words);
}

absl::StatusOr<engine::Predictor> NewPredictor(const Model& model) {
  if (model.spec.exported) {
    MUSTER_ASSIGN_OR_RETURN(auto tensors, GetPredictions(*model.spec.exported));
    return engine::Predictor(std::move(tensors));
  }
  return engine::Predictor(model.spec.head, model.spec.features.label.words);
}

features::FeatureSpec UsedFeatures(const features::FeatureSpec& spec,
                                   const features::FeatureRequest& request, bool with_label,
                                   bool with_key) {
  std::set<std::string> columns, fields;
  for (const std::string& name : request.dense) spec.CollectUses(name, &columns, &fields);
  for (const std::string& name : request.categorical) spec.CollectUses(name, &columns, &fields);
  features::FeatureSpec used;
  if (with_label) {
    used.label = spec.label;
    fields.insert(spec.label.input);
    used.weight = spec.weight;
    fields.insert(spec.weight);
  }
  if (with_key && !spec.key.empty()) {
    used.key = spec.key;
    fields.insert(spec.key);
  }
  for (const formats::Field& field : spec.schema.fields) {
    if (fields.contains(field.name)) used.schema.fields.push_back(field);
  }
  for (const ColumnSpec& column : spec.columns) {
    if (columns.contains(column.name)) used.columns.push_back(column);
  }
  return used;
}

}  // namespace muster::model
