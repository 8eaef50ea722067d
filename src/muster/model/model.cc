#include "muster/model/model.h"

#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "muster/engine/native/graph.h"
#include "muster/engine/native/head.h"

namespace muster::model {
namespace {

using engine::Initializer;
using engine::native::Activation;
using engine::native::GraphBuilder;
using engine::native::Node;
using features::ColumnKind;
using features::ColumnSpec;

Activation ActivationOf(const std::string& name) {
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

int Width(const features::FeatureSpec& spec, const ColumnSpec& column) {
  if (column.kind == ColumnKind::kNumeric) return 1;
  return static_cast<int>(spec.Find(column.input)->num_ids());
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
      options.tables.push_back({variable, request->Categorical(name), column.num_ids()});
    } else {
      options.dense.push_back({variable, request->Dense(name), Width(spec.features, column)});
    }
  }
  return graph->Linear(options);
}

Node BuildInputs(const ModelSpec& spec, int group, Request* request, GraphBuilder* graph) {
  std::vector<Node> parts;
  for (const std::string& name : spec.dnn->columns) {
    const ColumnSpec& column = *spec.features.Find(name);
    if (column.kind != ColumnKind::kEmbedding) {
      parts.push_back(graph->DenseInput(request->Dense(name), Width(spec.features, column),
                                        "dnn/input_from_feature_columns/input_layer/" + name));
      continue;
    }
    engine::native::EmbeddingOptions options;
    options.name =
        StrCat("dnn/input_from_feature_columns/input_layer/", name, "/embedding_weights");
    options.id_list = request->Categorical(column.input);
    options.rows = spec.features.Find(column.input)->num_ids();
    options.dimension = column.dimension;
    options.combiner = column.combiner;
    options.initializer = {Initializer::Kind::kTruncatedNormal,
                           1.0 / std::sqrt(static_cast<double>(column.dimension))};
    options.group = group;
    parts.push_back(graph->EmbeddingBag(options));
  }
  return parts.size() == 1 ? parts[0] : graph->Concat(parts);
}

Node BuildDnn(const ModelSpec& spec, int group, Request* request, GraphBuilder* graph) {
  const DnnSpec& dnn = *spec.dnn;
  Node node = BuildInputs(spec, group, request, graph);
  if (dnn.input_batch_norm) {
    node = graph->BatchNorm(node, {.name = "dnn/input_batchnorm", .group = group});
  }
  engine::native::DenseOptions options;
  options.group = group;
  options.l1 = dnn.l1;
  options.l2 = dnn.l2;
  options.activation = ActivationOf(dnn.activation);
  for (size_t i = 0; i < dnn.hidden_units.size(); ++i) {
    options.name = StrCat("dnn/hiddenlayer_", i);
    options.units = dnn.hidden_units[i];
    node = graph->Dense(node, options);
    if (dnn.dropout > 0) node = graph->Dropout(node, dnn.dropout);
    if (dnn.batch_norm) {
      // momentum 0.999 is tf.estimator's.
      node = graph->BatchNorm(
          node,
          {.name = StrCat(options.name, "/batchnorm_", i), .momentum = 0.999, .group = group});
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

absl::StatusOr<Model> BuildModel(const ModelSpec& spec,
                                 const engine::native::EngineOptions& options) {
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
  MUSTER_ASSIGN_OR_RETURN(
      model.engine, std::move(graph).Finish(logits, engine::native::NewHead(spec.head), options));
  return model;
}

features::FeatureSpec UsedFeatures(const features::FeatureSpec& spec,
                                   const features::FeatureRequest& request, bool with_label,
                                   bool with_key) {
  std::set<std::string> columns;
  std::set<std::string> fields;
  const std::function<void(const std::string&)> use = [&](const std::string& name) {
    const ColumnSpec* column = spec.Find(name);
    if (column == nullptr || !columns.insert(name).second) return;
    switch (column->kind) {
      case ColumnKind::kIndicator:
      case ColumnKind::kEmbedding:
        use(column->input);
        break;
      case ColumnKind::kCross:
        for (const std::string& key : column->keys) {
          // A key is a field, or else a bucketized column.
          if (spec.schema.Find(key) >= 0) {
            fields.insert(key);
          } else {
            use(key);
          }
        }
        break;
      default:
        fields.insert(column->input);
    }
  };
  for (const std::string& name : request.dense) use(name);
  for (const std::string& name : request.categorical) use(name);
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
