#include "muster/train/estimator.h"

#include <utility>

#include "muster/checkpoint/saver.h"
#include "muster/features/measure.h"
#include "muster/formats/event.h"
#include "muster/io/fenced_file_system.h"
#include "muster/train/first_pass.h"
#include "muster/train/loop/hooks/checkpoint_saver.h"
#include "muster/train/loop/train_loop.h"
#include "muster/train/train_hooks.h"

namespace muster::train {
namespace {

// Whether a training continues without its event file. It does, with a warning: only TensorBoard
// shows that file, and the checkpoints may still be written. A process that was fenced ends.
bool ContinuesWithout(const absl::Status& failure, Progress& progress) {
  if (absl::IsAborted(failure) || absl::IsCancelled(failure)) return false;
  progress.Warn(StrCat(
      "the event file cannot be written: ", failure.message(),
      "; TensorBoard will show nothing of this run from here on, and the training ", "continues"));
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Estimator>> Estimator::Create(io::FileSystem& files,
                                                             const Clock& clock,
                                                             const model::ModelSpec& spec,
                                                             const RunConfig& config) {
  MUSTER_RETURN_IF_ERROR(Validate(config));
  std::unique_ptr<Estimator> estimator(new Estimator(files, clock, config));
  auto mode = std::make_unique<ModeModel>();
  MUSTER_ASSIGN_OR_RETURN(
      mode->model,
      model::BuildModel(spec, {.native = {.threads = config.threads,
                                          .sub_batches_are_replicas = config.threads_are_replicas,
                                          .training = config.precision,
                                          .inference = config.inference_precision},
                               .tensorflow = config.tensorflow}));
  MUSTER_ASSIGN_OR_RETURN(engine::Predictor predictor, model::NewPredictor(mode->model));
  estimator->predictor_ = std::move(predictor);
  estimator->modes_[ModeKeys::kPredict] = std::move(mode);
  return estimator;
}

absl::StatusOr<std::unique_ptr<Estimator>> Estimator::Create(io::FileSystem& files,
                                                             const Clock& clock,
                                                             const features::FeatureSpec& features,
                                                             ModelFn model_fn,
                                                             const RunConfig& config) {
  MUSTER_RETURN_IF_ERROR(Validate(config));
  MUSTER_RETURN_IF_ERROR(features::Validate(features));
  if (!model_fn) return absl::InvalidArgumentError("an Estimator needs a model_fn");
  std::unique_ptr<Estimator> estimator(new Estimator(files, clock, config));
  estimator->model_fn_ = std::move(model_fn);
  estimator->features_ = features;
  MUSTER_ASSIGN_OR_RETURN(ModeModel* const mode, estimator->ModelFor(ModeKeys::kPredict));
  estimator->predictor_.emplace(mode->model.spec.head, features.label.words);
  return estimator;
}

absl::StatusOr<ModeModel*> Estimator::ModelFor(ModeKeys mode) {
  // All modes share one model, unless a model function makes one for each.
  std::unique_ptr<ModeModel>& made = modes_[model_fn_ ? mode : ModeKeys::kPredict];
  if (!made) {
    MUSTER_ASSIGN_OR_RETURN(made, CallModelFn(model_fn_, mode, features_, config_));
  }
  // An evaluator has no training data: it copies the numbers of its columns from the folder.
  model::ModelSpec& spec = made->model.spec;
  if (!model_fn_) MUSTER_RETURN_IF_ERROR(CopyMeasured(files_, config_.model_dir, &spec));
  return made.get();
}

absl::StatusOr<std::string> Estimator::CheckFolder() const {
  if (!model::HasSavedSpec(files_, config_.model_dir)) return "";
  if (model_fn_) {
    return absl::FailedPreconditionError(
        StrCat("model folder ", config_.model_dir, " holds a model of a model file (model.yaml), ",
               "not of a model function; give another model_dir, or remove that folder"));
  }
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec there,
                          model::LoadSavedSpec(files_, config_.model_dir));
  std::string difference = model::DescribeDifference(there, model().spec);
  if (difference.empty() || NothingTrained()) return difference;
  return absl::FailedPreconditionError(
      StrCat("model folder ", config_.model_dir, " holds a model of another spec: ", difference,
             "; to train the changed model from these weights, as ",
             "far as they fit, give another --model-dir and ", "--warm-start ", config_.model_dir,
             "; else remove that folder"));
}

bool Estimator::NothingTrained() const {
  // A checkpoint of a later step counts as trained even if it cannot be read.
  const auto names = files_.List(config_.model_dir);
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    if (name.starts_with("model.ckpt-") && !name.starts_with("model.ckpt-0.")) return false;
  }
  const auto latest = checkpoint::FindLatest(files_, config_.model_dir);
  if (!latest.ok()) return absl::IsNotFound(latest.status());
  const auto bundle = formats::BundleReader::Open(files_, latest->prefix);
  return latest->broken.empty() && bundle.ok() && checkpoint::GlobalStep(**bundle).value_or(1) == 0;
}

absl::Status Estimator::RemoveUntrained(io::FileSystem& files, Progress& progress) const {
  // Another process may have trained it while this one waited for the lease.
  MUSTER_ASSIGN_OR_RETURN(const std::string difference, CheckFolder());
  if (difference.empty()) return absl::OkStatus();
  progress.Note(StrCat("model folder ", config_.model_dir, " holds another model (", difference,
                       "), which was never trained: its files are replaced"));
  MUSTER_RETURN_IF_ERROR(checkpoint::RemoveCheckpoints(files, config_.model_dir));
  return model::RemoveSavedSpec(files, config_.model_dir);
}

absl::Status Estimator::SaveSpec() const {
  if (model_fn_) return absl::OkStatus();
  const model::ModelSpec& own = model().spec;
  if (!model::HasSavedSpec(files_, config_.model_dir)) {
    return model::SaveModelSpec(files_, own, config_.model_dir);
  }
  return model::UpdateSavedSpec(files_, own, config_.model_dir);
}

absl::StatusOr<TrainResult> Estimator::Train(const TrainSpec& spec, Progress& progress,
                                             const std::atomic<bool>& stop) {
  MUSTER_RETURN_IF_ERROR(Validate(spec));
  const bool chief = spec.replicas == nullptr || spec.replicas->is_chief();
  MUSTER_ASSIGN_OR_RETURN(ModeModel* const mode, ModelFor(ModeKeys::kTrain));
  const std::string unmeasured = features::FindUnmeasured(mode->model.spec.features);
  if (!unmeasured.empty()) {
    return absl::FailedPreconditionError(
        StrCat("column '", unmeasured, "' takes numbers from the training data: call ",
               "MeasureColumns (train/first_pass.h) before the Estimator is made"));
  }
  if (chief) MUSTER_RETURN_IF_ERROR(CheckFolder().status());
  MUSTER_ASSIGN_OR_RETURN(const auto variables, CreateVariables(spec, mode->model));
  inference_.reset();
  // The lease comes before the newest checkpoint is read: from here on no other process writes one.
  std::unique_ptr<ModelLease> lease;
  const absl::Status found = files_.Stat(config_.model_dir).status();
  if (chief && found.ok()) {
    MUSTER_ASSIGN_OR_RETURN(lease, AcquireLease(progress, stop));
  }
  io::FencedFileSystem files(
      files_, [&] { return lease ? lease->Check() : absl::OkStatus(); },
      [&] { return lease ? lease->CheckIdentity() : absl::OkStatus(); });
  formats::EventWriter events(files, config_.model_dir, clock_);
  events.SetTolerance(
      [&](const absl::Status& failure) { return ContinuesWithout(failure, progress); });
  Session session{.files = files,
                  .clock = clock_,
                  .config = config_,
                  .model = mode->model,
                  .variables = *variables,
                  .events = chief ? &events : nullptr,
                  .progress = progress};
  if (!spec.input_fn) session.data.batch_size = spec.input.reader.batch_size;
  TrainSpec limited = spec;
  if (chief) {
    if (lease != nullptr) MUSTER_RETURN_IF_ERROR(RemoveUntrained(files, progress));
    MUSTER_RETURN_IF_ERROR(Restore(session));
    if (lease == nullptr) {
      MUSTER_RETURN_IF_ERROR(Annotate(files_.MakeFolders(config_.model_dir), "making --model-dir"));
      MUSTER_ASSIGN_OR_RETURN(lease, AcquireLease(progress, stop));
    }
    MUSTER_RETURN_IF_ERROR(SaveSpec());
    if (spec.steps) limited.max_steps = session.step + *spec.steps;
    if (limited.max_steps && session.step >= *limited.max_steps) {
      progress.Note(StrCat("Skipping training since max_steps has already saved: the model is at ",
                           "step ", session.step, ", max_steps is ", *limited.max_steps));
      if (spec.replicas != nullptr) MUSTER_RETURN_IF_ERROR(spec.replicas->Leave());
      return TrainResult{.first_step = session.step,
                         .step = session.step,
                         .checkpoint = session.checkpoint.prefix,
                         .nothing_left = true,
                         .records = AllRecords(session)};
    }
  }
  HookList hooks = TrainHooks(limited, config_, mode->custom);
  // The guard is first, so that no other hook reports anything that a fenced process has done.
  if (lease != nullptr) hooks.insert(hooks.begin(), NewLeaseGuard(*lease));
  auto result = TrainLoop(session, limited, std::move(hooks)).Run(stop);
  // A training that failed before its first step leaves no folder that looks like a model.
  const bool is_alone = spec.replicas == nullptr;
  if (!result.ok() && is_alone && absl::IsNotFound(found) && session.step == 0) {
    events.Close().IgnoreError();
    files.RemoveAll(config_.model_dir).IgnoreError();
  }
  return result;
}

// A chief needs no memory for what its parameter servers load by themselves. They do not load the
// initial values of a warm start or of an exported model.
absl::StatusOr<std::unique_ptr<Variables>> Estimator::CreateVariables(
    const TrainSpec& spec, const model::Model& model) const {
  const Peers* const peers = spec.replicas;
  if (peers != nullptr && !peers->is_chief() && !peers->all_have_weights()) {
    return Variables::WithoutMemory(model);
  }
  if (peers == nullptr || peers->all_have_weights() || !origin_.empty() || warm_start_ ||
      model.spec.exported) {
    return Variables::Create(model, config_.seed, /*with_slots=*/true);
  }
  return Variables::CreateWithout(
      [&](const engine::VariableSpec& each) { return peers->IsKeptByServers(each); }, model,
      config_.seed);
}

absl::StatusOr<std::unique_ptr<ModelLease>> Estimator::AcquireLease(
    Progress& progress, const std::atomic<bool>& stop) const {
  LeaseOptions options;
  options.note = [&progress](const std::string& text) { progress.Note(text); };
  options.stop = &stop;
  return ModelLease::Acquire(
      files_, config_.model_dir,
      {.job = config_.job,
       .task = config_.job.empty() ? "" : StrCat(config_.task_type, "-", config_.task_id),
       .incarnation = config_.incarnation},
      clock_, options);
}

// Fills the session from the newest checkpoint or, if there is none, from that of another folder,
// or from the exported model's initial values and the warm start.
absl::Status Estimator::Restore(Session& session) const {
  MUSTER_RETURN_IF_ERROR(RestoreSession(session));
  if (!session.checkpoint.prefix.empty()) return absl::OkStatus();
  const auto state = checkpoint::ReadState(files_, config_.model_dir);
  if (state.ok() && !state->latest.empty()) {
    session.progress.Warn(StrCat(io::JoinPath(config_.model_dir, "checkpoint"), " names ",
                                 state->latest, ", which is not there: the training begins anew"));
  }
  if (!origin_.empty()) return ContinueFrom(origin_, session);
  if (const auto& exported = session.model.spec.exported) {
    // An exported Keras model comes with its initial values.
    const std::string index = exported->weights() + ".index";
    if (!files_.Stat(index).ok()) {
      return absl::NotFoundError(
          StrCat(index, ", which has the initial values, does not exist: export the model again"));
    }
    MUSTER_RETURN_IF_ERROR(
        ApplyWarmStart(files_, {.from = exported->weights()}, session.variables).status());
    const auto slots = session.variables.UpdaterTensors("optimizer");
    if (!slots.empty()) {
      MUSTER_ASSIGN_OR_RETURN(const auto bundle,
                              formats::BundleReader::Open(files_, exported->weights()));
      MUSTER_RETURN_IF_ERROR(Annotate(checkpoint::Restore(*bundle, slots), exported->weights()));
    }
  }
  if (!warm_start_) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const int count, ApplyWarmStart(files_, *warm_start_, session.variables));
  session.progress.Note(StrCat("Warm-started ", count, " variables from ", warm_start_->from));
  return absl::OkStatus();
}

}  // namespace muster::train
