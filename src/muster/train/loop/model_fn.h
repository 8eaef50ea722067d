// A custom model: a function that composes native layers (engine/native/graph.h), under the
// contract of tf.estimator's model_fn. docs/estimator.md has an example.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/engine.h"
#include "muster/engine/heads/head_spec.h"
#include "muster/engine/predictions.h"
#include "muster/features/column.h"
#include "muster/features/transform.h"
#include "muster/io/file_system.h"
#include "muster/model/model.h"
#include "muster/optim/optimizer.h"
#include "muster/train/loop/hook.h"
#include "muster/train/loop/run_config.h"

namespace muster::train {

// A custom metric. One owner thread.
class EvalMetric {
 public:
  virtual ~EvalMetric() = default;
  // Adds a batch: logits are rows x logits_dimension, labels rows x labels_dimension, weights rows
  // (empty: all 1).
  virtual void Add(std::span<const float> logits, std::span<const float> labels,
                   std::span<const float> weights) = 0;
  virtual double Value() const = 0;
};

// The result of a model function for one mode.
//   TRAIN    needs the engine (it has the loss) and an optimizer for each group of its variables
//   EVAL     needs the engine and the head
//   PREDICT  needs the engine and the head (which makes predictions of logits)
struct EstimatorSpec {
  ModeKeys mode = ModeKeys::kTrain;
  // The columns that make FeatureBatch::dense and id_lists, in the order in which the engine
  // numbers them.
  features::FeatureRequest request = {};
  std::unique_ptr<engine::Engine> engine = {};
  std::vector<optim::OptimizerSpec> optimizers = {};  // by VariableSpec::group
  std::optional<engine::HeadSpec> head = {};
  // Metrics in addition to the head's; created anew for each evaluation. Not "loss" or
  // "global_step".
  std::map<std::string, std::function<std::unique_ptr<EvalMetric>()>> eval_metrics = {};
  std::vector<std::shared_ptr<Hook>> training_chief_hooks = {};  // after the CheckpointSaver
  std::vector<std::shared_ptr<Hook>> training_hooks = {};        // after all others
  std::vector<std::shared_ptr<Hook>> evaluation_hooks = {};
  std::vector<std::shared_ptr<Hook>> prediction_hooks = {};
  // Writes the weights as a SavedModel; without it a custom model cannot be exported.
  std::function<absl::Status(io::FileSystem& files, std::span<const engine::VariableSpec> variables,
                             std::span<const engine::VariableView> weights,
                             const std::string& folder)>
      export_model = {};
};

// Called once for each mode that is used. The variables of kEval and kPredict are among those of
// kTrain, by name and shape.
using ModelFn =
    std::function<absl::StatusOr<EstimatorSpec>(ModeKeys mode, const RunConfig& config)>;

std::string_view ModeName(ModeKeys mode);  // "train", "eval", "predict"

// INVALID_ARGUMENT if the spec lacks something that `mode` needs, or has an invalid value for it.
absl::Status Validate(const EstimatorSpec& spec, ModeKeys mode);

// The model of an Estimator in one mode.
struct ModeModel {
  model::Model model;
  EstimatorSpec custom;  // of a model function; its engine has moved into `model`
};
absl::StatusOr<std::unique_ptr<ModeModel>> CallModelFn(const ModelFn& model_fn, ModeKeys mode,
                                                       const features::FeatureSpec& features,
                                                       const RunConfig& config);

}  // namespace muster::train
