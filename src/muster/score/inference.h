// The weights of a trained model and the forward pass with them, for all code that predicts or
// evaluates: score/scorer.h and train/estimator.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "muster/base/status.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/engine/engine.h"
#include "muster/io/file_system.h"
#include "muster/model/model.h"
#include "muster/train/weights/dynamic_tables.h"
#include "muster/train/weights/variables.h"

namespace muster::score {

// The spec of the model that was trained in the folder. NOT_FOUND if it is not a model folder.
absl::StatusOr<model::ModelSpec> LoadModelDir(io::FileSystem& files, const std::string& model_dir);

// Which weights of a trained model to load.
struct WeightsSource {
  std::string model_dir = {};
  // "DIR/model.ckpt-N", or the folder of an export of this model; "": the newest of `model_dir`.
  std::string checkpoint = {};
  // Whether an older checkpoint is loaded if the newest is broken.
  bool fall_back = false;
};

// Whether it is a training's first checkpoint, from before its first step.
bool IsUntrained(std::string_view prefix);
// DATA_LOSS if newer checkpoints than an untrained one were skipped.
absl::Status CheckTrained(const checkpoint::Found& found);

// Fills `variables`, which belong to a model of `spec` and have no slots. NOT_FOUND if there is no
// checkpoint; DATA_LOSS if it is broken, or if the newest is broken and `fall_back` is false or all
// others are untrained;
// FAILED_PRECONDITION if it belongs to another model; errors of RestoreExport. After an error the
// variables hold unspecified values.
absl::StatusOr<checkpoint::Restored> LoadWeights(io::FileSystem& files,
                                                 const model::ModelSpec& spec,
                                                 const WeightsSource& source,
                                                 const train::Variables& variables);

// Runs a model forward on batches. One owner thread, since an engine has one.
class ForwardPass {
 public:
  // `variables` hold loaded weights, those of `model` or of another model of the same spec: several
  // forward passes, each with its own model, can share them. The weights must not change while any
  // of these passes computes. `index` is the result of IndexKeys for `variables` and can be shared
  // too. `variables` and the engine and optimizers of `model` must outlive the result.
  static absl::StatusOr<ForwardPass> Create(const model::Model& model,
                                            const train::Variables& variables,
                                            std::shared_ptr<const train::KeyIndex> index);
  // Returns the index that Create takes; null if no table of the model grows.
  static std::shared_ptr<const train::KeyIndex> IndexKeys(const model::ModelSpec& spec,
                                                          const train::Variables& variables);

  // Promises that the weights do not change until the next call of Freeze: Run may then reuse
  // results that depend on the weights alone (Engine::Freeze).
  absl::Status Freeze();
  // Replaces *out by the forward pass over the batch. Errors are Engine::Predict's.
  absl::Status Run(const features::FeatureBatch& batch, engine::Forward* out);

 private:
  ForwardPass(engine::Engine& engine, const train::Variables& variables)
      : engine_(&engine), variables_(&variables) {}

  engine::Engine* engine_;
  const train::Variables* variables_;
  std::unique_ptr<train::DynamicTables> dynamic_tables_;  // null if no table grows
};

}  // namespace muster::score
