// Estimator: trains, evaluates, predicts with and exports one model in one folder, as tf.estimator
// does, in one process. To predict without hooks and for several threads at once, see
// score/scorer.h.
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
#include <span>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/engine/predictions.h"
#include "muster/io/file_system.h"
#include "muster/metrics/metrics.h"
#include "muster/model/model.h"
#include "muster/train/input/input.h"
#include "muster/train/loop/model_fn.h"
#include "muster/train/loop/progress.h"
#include "muster/train/loop/run_config.h"
#include "muster/train/loop/specs.h"
#include "muster/train/model_lease.h"
#include "muster/train/weights/variables.h"
#include "muster/train/weights/warm_start.h"

namespace muster::train {

// One owner thread.
class Estimator {
 public:
  // Builds the model; makes no file yet. `files` and `clock` must outlive the estimator.
  static absl::StatusOr<std::unique_ptr<Estimator>> Create(io::FileSystem& files,
                                                           const Clock& clock,
                                                           const model::ModelSpec& spec,
                                                           const RunConfig& config);

  // Creates an estimator for a user's model function. `features` are the rows' fields, columns and
  // label. They are not written into model_dir, and 'muster' cannot read such a folder without the
  // program.
  static absl::StatusOr<std::unique_ptr<Estimator>> Create(io::FileSystem& files,
                                                           const Clock& clock,
                                                           const features::FeatureSpec& features,
                                                           ModelFn model_fn,
                                                           const RunConfig& config);

  // Trains from the newest checkpoint, or from initial weights, until the data or the steps end or
  // `stop` becomes true (then it saves and returns `interrupted`). FAILED_PRECONDITION when
  // MODEL_DIR holds a model of another spec, or another process trains it; ABORTED when another
  // incarnation of this task has taken over the folder (model_lease.h).
  absl::StatusOr<TrainResult> Train(const TrainSpec& spec, Progress& progress,
                                    const std::atomic<bool>& stop);

  // If MODEL_DIR has no checkpoint yet, Train begins with these weights. If that fails, a new
  // MODEL_DIR is not made.
  void set_warm_start(WarmStart settings) { warm_start_ = std::move(settings); }

  // If MODEL_DIR has no checkpoint yet, Train continues from this one, of another folder (a prefix,
  // or the folder): with its weights, slots, step, record counts and position in the data. Settings
  // of this model that change no shape, such as learning rates, may differ from those of its model.
  // It comes before a warm start.
  void set_origin(std::string checkpoint) { origin_ = std::move(checkpoint); }

  // Evaluate, Predict and Export use the weights of this checkpoint ("DIR/model.ckpt-N", or the
  // folder of an export of this model); "": of MODEL_DIR's newest checkpoint.
  void set_checkpoint(std::string prefix) { checkpoint_ = std::move(prefix); }
  // When the newest checkpoint is corrupt, Evaluate uses the next older intact one and warns.
  // Predict and Export do the same if `fall_back` is true; else they return DATA_LOSS.
  void set_fall_back(bool fall_back) { fall_back_ = fall_back; }

  // `before_events` is called with the result before its events are written. It must do whatever
  // may not be lost if the process is killed: a later run regards an evaluation whose events exist
  // as done.
  using BeforeEvents = std::function<absl::Status(const EvalResult& result)>;
  absl::StatusOr<EvalResult> Evaluate(const EvalSpec& spec, Progress& progress,
                                      const BeforeEvents& before_events = {});

  // Returns the metrics that Evaluate would give, without events or hooks, and writes nothing.
  absl::StatusOr<EvalResult> EvaluateQuietly(const EvalSpec& spec);

  // Opens the evaluation's data and reads its first batch, so that invalid data is found before a
  // training and not hours later. Data from an input_fn or a stream, which may be readable only
  // once, is not opened.
  absl::Status CheckData(const EvalSpec& spec);

  // For an evaluation by several processes: returns the metric state of one process for its part of
  // the data, which is spec.input.source.shard and may be empty. Writes no events. UNIMPLEMENTED
  // for a model function with custom metrics.
  absl::StatusOr<metrics::State> EvaluatePart(const EvalSpec& spec, Progress& progress);
  // Merges the states of all parts: `next` returns them one by one, in the order of the data, then
  // nullopt. Writes the events; the result is the same as with one process (docs/metrics.md).
  using NextState = std::function<absl::StatusOr<std::optional<metrics::State>>()>;
  absl::StatusOr<EvalResult> MergeEvaluation(const EvalSpec& spec, const NextState& next,
                                             Progress& progress);

  // Calls `take` for each batch, in the order of the data, with the predictions of the model's
  // head, which are valid during the call.
  using TakePredictions =
      std::function<absl::Status(const InputBatch& batch, const engine::Predictions& predictions)>;
  absl::StatusOr<PredictResult> Predict(const InputSpec& input, const TakePredictions& take,
                                        Progress& progress);
  // Like the Predict above, with hooks. AfterRun is called for a batch before `take`.
  absl::StatusOr<PredictResult> Predict(const PredictSpec& spec, const TakePredictions& take,
                                        Progress& progress);

  // Writes a SavedModel into FOLDER. UNIMPLEMENTED for a model function without export_model.
  absl::Status Export(const std::string& folder);

  // The prediction model, if a model function makes one model for each mode.
  const model::Model& model() const { return modes_.at(ModeKeys::kPredict)->model; }
  const RunConfig& config() const { return config_; }
  io::FileSystem& files() const { return files_; }
  const Clock& clock() const { return clock_; }
  // Makes Predict's predictions.
  const engine::Predictor& predictor() const { return *predictor_; }
  // Why the last Evaluate, Predict or Export skipped the newest checkpoint; "" if it did not.
  // Evaluate and Predict also warn about it themselves.
  const std::string& restore_note() const { return restore_note_; }
  // The checkpoint whose weights the last Evaluate, Predict or Export used.
  const std::string& restored_checkpoint() const { return restored_checkpoint_; }

 private:
  Estimator(io::FileSystem& files, const Clock& clock, const RunConfig& config)
      : files_(files), clock_(clock), config_(config) {}

  // FAILED_PRECONDITION when model_dir holds another model with trained weights; creates nothing.
  // Returns how another model there that was never trained differs from this one, else "".
  absl::StatusOr<std::string> CheckFolder() const;
  // Whether model_dir has no checkpoint but that of step 0, which is not trained.
  bool NothingTrained() const;
  // Removes another model's spec and its checkpoint of step 0 from model_dir, in which, according
  // to CheckFolder, nothing was trained. `files` must hold model_dir's lease.
  absl::Status RemoveUntrained(io::FileSystem& files, Progress& progress) const;
  // Writes model_dir's model.yaml, or a copy of the export. If it exists, replaces what is not
  // trained (model::UpdateSavedSpec) by that of this training. This process must have the lease.
  absl::Status SaveSpec() const;
  absl::StatusOr<std::unique_ptr<Variables>> CreateVariables(const TrainSpec& spec,
                                                             const model::Model& model) const;
  absl::StatusOr<std::unique_ptr<ModelLease>> AcquireLease(Progress& progress,
                                                           const std::atomic<bool>& stop) const;
  absl::Status Restore(Session& session) const;
  // Loads checkpoint_ or the newest checkpoint or, with `fall_back`, an older one.
  absl::StatusOr<checkpoint::Restored> LoadForInference(ModeModel* mode, bool fall_back);
  absl::StatusOr<ModeModel*> ModelFor(ModeKeys mode);
  // A running evaluation or prediction: its weights, hooks and opened data.
  struct Inference;
  absl::StatusOr<std::unique_ptr<Inference>> OpenInference(
      ModeKeys key, const InputSpec& files, const InputFn& input_fn,
      const std::vector<std::shared_ptr<Hook>>& user_hooks, Progress& progress);
  using TakeForward = std::function<void(const engine::Forward& forward, const InputBatch& batch)>;
  InputSpec GroupedInput(const EvalSpec& spec) const;
  absl::Status RunEvaluation(Inference& run, const EvalSpec& spec, const TakeForward& take);
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
  const ModeModel* inference_mode_ = nullptr;  // the mode of inference_
  std::string checkpoint_;
  bool fall_back_ = false;
  std::string restore_note_;
  std::string restored_checkpoint_;
  std::optional<WarmStart> warm_start_;
  std::string origin_;  // "": none
};

}  // namespace muster::train
