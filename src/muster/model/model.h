// Model: a built ModelSpec: the requested features, the engine and the optimizers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/engine.h"
#include "muster/engine/native/graph.h"
#include "muster/engine/predictions.h"
#include "muster/features/transform.h"
#include "muster/model/spec/model_spec.h"
#include "muster/optim/optimizer.h"

namespace muster::model {

// The variables are named as in tf.estimator's DNNLinearCombinedClassifier:
//   linear/linear_model/<column>/weights, linear/linear_model/bias_weights,
//   dnn/input_from_feature_columns/input_layer/<embedding>/embedding_weights, or <shared>,
//   dnn/hiddenlayer_<i>/{kernel,bias}, dnn/hiddenlayer_<i>/batchnorm_<i>/{gamma,...},
//   dnn/input_batchnorm/{gamma,...}, dnn/logits/{kernel,bias}.
// A linear or dnn model alone uses the same names, as do the other types for the parts that they
// have in common: an embedding's table has the same name whichever part reads it. Further names are
//   fm/<column>/kernel [width, dimension]: the vectors of a column that is no embedding,
//   dnn/crosslayer_<i>/{kernel,bias}, or with a rank dnn/crosslayer_<i>/{v/kernel,u/kernel,u/bias}.
// The towers of a two_tower model have query and item in place of dnn, and <tower>/vector in place
// of dnn/logits. A baseline model has baseline/bias.
struct Model {
  ModelSpec spec;
  std::unique_ptr<io::FileSystem> files;  // an exported model's engine reads its export through it
  features::FeatureRequest request;
  std::unique_ptr<engine::Engine> engine;
  std::vector<optim::OptimizerSpec> optimizer_specs;          // by VariableSpec::group
  std::vector<std::unique_ptr<optim::Optimizer>> optimizers;  // by VariableSpec::group
  // For exported models: engine->updater() is the optimizer of all variables, and there are no
  // others.
  bool applies = false;
  // If not null: the learning rate of the optimizers, which must be set from engine->updater()
  // before each step.
  std::shared_ptr<optim::StepRate> rate;
};

// Returns the variable of an embedding column; columns that share a table have the same one.
std::string EmbeddingVariable(const features::ColumnSpec& column);

// INVALID_ARGUMENT for bf16 without a dnn part; FAILED_PRECONDITION for a precision that this
// processor does not have.
struct BuildOptions {
  engine::native::EngineOptions native = {};
  std::string tensorflow = {};  // for exported models, which also use native.threads
};
absl::StatusOr<Model> BuildModel(const ModelSpec& spec, const BuildOptions& options = {});

// INVALID_ARGUMENT if rows cannot be grouped by the input `group` (MetricsSpec::group).
absl::Status CheckGroup(const ModelSpec& spec, const std::string& group);

// Turns rows into batches. `used` has the fields that it reads: those of UsedFeatures, or of an
// exported model.
struct RowTransform {
  features::FeatureSpec used;
  std::unique_ptr<features::FeatureTransform> transform;
};
// `group` is a field that the caller reads in addition, "" for none. INVALID_ARGUMENT if the model
// has no such input, or if it is a list.
absl::StatusOr<RowTransform> NewRowTransform(const Model& model, bool with_labels, bool with_key,
                                             const std::string& group = "");

// Makes the metrics of the model's head, with `spec`; for an exported model its own metrics, which
// `model` must outlive.
absl::StatusOr<std::unique_ptr<metrics::Metrics>> NewMetrics(const Model& model,
                                                             const metrics::MetricsSpec& spec);
// `model` need not outlive the predictor. INVALID_ARGUMENT if an exported model's prediction has a
// type that cannot be written.
absl::StatusOr<engine::Predictor> NewPredictor(const Model& model);

// Returns `spec` with only the fields that the requested columns read, those of label and weight if
// `with_label`, that of the key if `with_key`, and `group`. So data without a label can be scored,
// and unused inputs are never decoded.
features::FeatureSpec UsedFeatures(const features::FeatureSpec& spec,
                                   const features::FeatureRequest& request, bool with_label,
                                   bool with_key, const std::string& group = "");

}  // namespace muster::model
