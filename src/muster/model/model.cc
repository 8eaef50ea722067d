#include "muster/model/model.h"

#include <set>
#include <utility>

#include "muster/engine/heads/head.h"
#include "muster/engine/native/graph.h"
#include "muster/model/exported_model.h"
#include "muster/model/keras/exported_columns.h"
#include "muster/model/network.h"

namespace muster::model {

using features::ColumnSpec;

std::string EmbeddingVariable(const ColumnSpec& column) {
  if (!column.shared.empty()) return column.shared;
  return StrCat("dnn/input_from_feature_columns/input_layer/", column.name, "/embedding_weights");
}

absl::StatusOr<Model> BuildModel(const ModelSpec& spec, const BuildOptions& build) {
  if (spec.exported) return BuildExported(spec, build);
  if (!spec.metrics.group.empty()) MUSTER_RETURN_IF_ERROR(CheckGroup(spec, spec.metrics.group));
  const engine::native::EngineOptions& options = build.native;
  const bool wants_bf16 = options.training == engine::Precision::kBfloat16 ||
                          options.inference == engine::Precision::kBfloat16;
  if (wants_bf16 && spec.DeepParts().empty()) {
    return absl::InvalidArgumentError(StrCat("precision bf16 is for the layers of a deep part; a ",
                                             spec.type(), " model has none: use fp32"));
  }
  Model model;
  model.spec = spec;
  engine::native::GraphBuilder graph;
  const engine::native::Node logits =
      BuildNetwork(spec, &model.request, &model.optimizer_specs, &graph);
  for (const optim::OptimizerSpec& optimizer : model.optimizer_specs) {
    MUSTER_ASSIGN_OR_RETURN(auto built, optim::NewOptimizer(optimizer));
    model.optimizers.push_back(std::move(built));
  }
  MUSTER_ASSIGN_OR_RETURN(model.engine,
                          std::move(graph).Finish(logits, engine::NewHead(spec.head), options));
  return model;
}

absl::Status CheckGroup(const ModelSpec& spec, const std::string& group) {
  const int field = spec.features.schema.Find(group);
  if (spec.exported || field < 0) {
    return absl::InvalidArgumentError(
        StrCat("metrics.group: '", group, "' is not an input of the model file"));
  }
  if (!spec.features.schema.fields[static_cast<size_t>(field)].list) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("metrics.group: '", group, "' is a list; rows are grouped by one value"));
}

absl::StatusOr<RowTransform> NewRowTransform(const Model& model, bool with_labels, bool with_key,
                                             const std::string& group) {
  RowTransform rows;
  if (!group.empty()) MUSTER_RETURN_IF_ERROR(CheckGroup(model.spec, group));
  if (model.spec.exported) {
    features::RawColumnSpecs columns = GetRawColumns(*model.spec.exported);
    MUSTER_ASSIGN_OR_RETURN(rows.used.schema, features::RawSchema(columns, with_labels, with_key));
    rows.used.label = model.spec.features.label;
    if (with_key) rows.used.key = model.spec.features.key;
    MUSTER_ASSIGN_OR_RETURN(rows.transform,
                            features::NewRawTransform(std::move(columns), rows.used.schema));
    return rows;
  }
  rows.used = UsedFeatures(model.spec.features, model.request, with_labels, with_key, group);
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
                                   bool with_key, const std::string& group) {
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
  fields.insert(group);
  for (const formats::Field& field : spec.schema.fields) {
    if (fields.contains(field.name)) used.schema.fields.push_back(field);
  }
  for (const ColumnSpec& column : spec.columns) {
    if (columns.contains(column.name)) used.columns.push_back(column);
  }
  return used;
}

}  // namespace muster::model
