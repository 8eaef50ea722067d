// Estimator: trains, evaluates, predicts with and exports one model in one folder, as tf.estimator
// does, in one process.
//
// MODEL_DIR holds model.yaml (the spec, with its vocabularies beside it), the checkpoints, event
// files and, after evaluation, eval/ with its own events.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/engine/predictions.h"
#include "muster/io/file_system.h"
#include "muster/metrics/metrics.h"
#include "muster/model/model.h"
#include "muster/train/input.h"
#include "muster/train/model_fn.h"
#include "muster/train/model_lease.h"
#include "muster/train/progress.h"
#include "muster/train/run_config.h"
#include "muster/train/specs.h"
#include "muster/train/variables.h"
#include "muster/train/warm_start.h"

namespace muster::train {

// One owner thread.
class Estimator {
 public:
  // Builds the model; makes no file yet. `files` and `clock` must outlive it.
  static absl::StatusOr<std::unique_ptr<Estimator>> Create(io::FileSystem& files,
                                                           const Clock& clock,
                                                           const model::ModelSpec& spec,
                                                           const RunConfig& config);

  // Of a user's model function. `features` are the rows' fields, columns and label; they are not
  // written into model_dir, and 'muster' cannot read such a folder without the program.
  static absl::StatusOr<std::unique_ptr<Estimator>> Create(io::FileSystem& files,
                                                           const Clock& clock,
                                                           const features::FeatureSpec& features,
                                                           ModelFn model_fn,
                                                           const RunConfig& config);

  // Trains from the newest checkpoint, or from initial weights, until the data or the steps end, or
  // `stop` becomes true (then it saves and returns `interrupted`). FAILED_PRECONDITION when
  // MODEL_DIR holds a model of another spec, or another process trains it; ABORTED when another
  // incarnation of this task has taken it over (model_lease.h).
  absl::StatusOr<TrainResult> Train(const TrainSpec& spec, Progress& progress,
                                    const std::atomic<bool>& stop);

  // Where MODEL_DIR has no checkpoint yet, Train begins with these weights. When that fails, a new
  // MODEL_DIR is not made.
  void set_warm_start(WarmStart settings) { warm_start_ = std::move(settings); }

  // Evaluate, Predict and Export take this checkpoint's weights ("DIR/model.ckpt-N"); "": the
  // newest's of MODEL_DIR.
  void set_checkpoint(std::string prefix) { checkpoint_ = std::move(prefix); }

  // `before_events` is called with the result before its events are written: for what must not be
  // lost when the process is killed in between, since a later run finds this evaluation in them.
  using BeforeEvents = std::function<absl::Status(const EvalResult& result)>;
  absl::StatusOr<EvalResult> Evaluate(const EvalSpec& spec, Progress& progress,
                                      const BeforeEvents& before_events = {});

  // An evaluation by several processes: what one has counted in its part of the data, which
  // spec.input.source.shard says and which may be empty; no events. UNIMPLEMENTED for a model
  // function with metrics of its own.
  absl::StatusOr<metrics::State> EvaluatePart(const EvalSpec& spec, Progress& progress);
  // And what all have: `next` gives a part's after the other, in the order of the data, then
  // nullopt. Writes the events; the result is that of one process (docs/metrics.md).
  using NextState = std::function<absl::StatusOr<std::optional<metrics::State>>()>;
  absl::StatusOr<EvalResult> MergeEvaluation(const EvalSpec& spec, const NextState& next,
                                             Progress& progress);

  // Calls `take` for each batch in the order of the data with what the model's head predicts,
  // valid during the call.
  using TakePredictions =
      std::function<absl::Status(const InputBatch& batch, const engine::Predictions& predictions)>;
  absl::StatusOr<uint64_t> Predict(const InputSpec& input, const TakePredictions& take,
                                   Progress& progress);
  // With hooks, whose AfterRun of a batch comes before it is taken.
  absl::StatusOr<uint64_t> Predict(const PredictSpec& spec, const TakePredictions& take,
                                   Progress& progress);

  // A SavedModel in FOLDER. UNIMPLEMENTED for a model function without
  // export_model.
  absl::Status Export(const std::string& folder);

  // That of prediction, where a model function makes one for each mode.
  const model::Model& model() const { return modes_.at(ModeKeys::kPredict)->model; }
  const RunConfig& config() const { return config_; }
  io::FileSystem& files() const { return files_; }
  const Clock& clock() const { return clock_; }
  // What Predict's predictions are made by.
  const engine::Predictor& predictor() const { return *predictor_; }
  // Why the last Evaluate, Predict or Export passed over the newest checkpoint; "" when it did not.
  // The first two note it themselves.
  const std::string& restore_note() const { return restore_note_; }

 private:
  Estimator(io::FileSystem& files, const Clock& clock, const RunConfig& config)
      : files_(files), clock_(clock), config_(config) {}

  // FAILED_PRECONDITION when model_dir holds another model; makes nothing.
  absl::Status CheckFolder() const;
  // Makes model_dir with its model.yaml, unless they are there.
  absl::Status MakeFolder() const;
  absl::StatusOr<std::unique_ptr<ModelLease>> TakeLease() const;
  absl::Status Restore(Session& session) const;
  // Weights of checkpoint_, or of the newest.
  absl::StatusOr<checkpoint::Restored> LoadForInference(ModeModel* mode);
  absl::StatusOr<ModeModel*> ModelFor(ModeKeys mode);
  // An evaluation or a prediction with its weights, hooks and data open.
  struct Inference;
  absl::StatusOr<std::unique_ptr<Inference>> OpenInference(
      ModeKeys key, const InputSpec& files, const InputFn& input_fn,
      const std::vector<std::shared_ptr<Hook>>& user_hooks, Progress& progress);
  using TakeForward =
      std::function<void(const engine::Forward& forward, const features::FeatureBatch& batch)>;
  absl::Status RunEvaluation(Inference& run, const std::optional<int64_t>& steps,
                             const TakeForward& take);
  absl::StatusOr<EvalResult> Conclude(const EvalSpec& spec, EvalResult result,
                                      const BeforeEvents& before_events);

  io::FileSystem& files_;
  const Clock& clock_;
  const RunConfig config_;
  ModelFn model_fn_;  // empty: the model of a ModelSpec
  features::FeatureSpec features_;
  std::map<ModeKeys, std::unique_ptr<ModeModel>> modes_;
  std::optional<engine::Predictor> predictor_;
  std::unique_ptr<Variables> inference_;
  const ModeModel* inference_mode_ = nullptr;  // whose variables they are
  std::string checkpoint_;
  std::string restore_note_;
  std::optional<WarmStart> warm_start_;
};

// The spec of a trained model.
absl::StatusOr<model::ModelSpec> LoadModelDir(io::FileSystem& files, const std::string& model_dir);

}  // namespace muster::train
