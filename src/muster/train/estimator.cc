#include "muster/train/estimator.h"

#include <utility>

#include "muster/checkpoint/checkpoint.h"
#include "muster/formats/event.h"
#include "muster/model/saved_model.h"
#include "muster/train/checkpoint_saver.h"
#include "muster/train/train_loop.h"

namespace muster::train {
namespace {

absl::Status WriteEvalEvents(io::FileSystem& files, const Clock& clock, const std::string& folder,
                             int64_t step, const std::vector<metrics::NamedValue>& metrics) {
  MUSTER_RETURN_IF_ERROR(files.MakeFolders(folder));
  formats::EventWriter events(files, folder, clock);
  std::vector<formats::Scalar> scalars;
  for (const auto& [name, value] : metrics) {
    if (name != "global_step") scalars.emplace_back(name, static_cast<float>(value));
  }
  MUSTER_RETURN_IF_ERROR(events.WriteScalars(step, scalars));
  return events.Close();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Estimator>> Estimator::Create(io::FileSystem& files,
                                                             const Clock& clock,
                                                             const model::ModelSpec& spec,
                                                             const RunConfig& config) {
  MUSTER_RETURN_IF_ERROR(Validate(config));
  std::unique_ptr<Estimator> estimator(new Estimator(files, clock, config));
  MUSTER_ASSIGN_OR_RETURN(estimator->model_,
                          model::BuildModel(spec, {.threads = config.threads,
                                                   .training = config.precision,
                                                   .inference = config.inference_precision}));
  estimator->predictor_.emplace(spec.head, spec.features.label.words);
  return estimator;
}

absl::Status Estimator::PrepareFolder() {
  const std::string path = io::JoinPath(config_.model_dir, "model.yaml");
  if (files_.Stat(path).ok()) {
    MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec there, model::LoadModelSpec(files_, path));
    const std::string difference = model::DescribeDifference(there, model_.spec);
    if (difference.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        StrCat("model folder ", config_.model_dir, " holds a model of another spec: ", difference,
               "; give another --model-dir, or remove that folder"));
  }
  MUSTER_RETURN_IF_ERROR(Annotate(files_.MakeFolders(config_.model_dir), "making --model-dir"));
  return model::SaveModelSpec(files_, model_.spec, config_.model_dir);
}

absl::StatusOr<TrainResult> Estimator::Train(const TrainSpec& spec, Progress& progress,
                                             const std::atomic<bool>& stop) {
  MUSTER_RETURN_IF_ERROR(Validate(spec));
  MUSTER_RETURN_IF_ERROR(PrepareFolder());
  MUSTER_ASSIGN_OR_RETURN(const auto variables,
                          Variables::Create(model_, config_.seed, /*with_slots=*/true));
  inference_.reset();
  formats::EventWriter events(files_, config_.model_dir, clock_);
  Session session{.files = files_,
                  .clock = clock_,
                  .config = config_,
                  .model = model_,
                  .variables = *variables,
                  .events = &events,
                  .progress = progress};
  MUSTER_RETURN_IF_ERROR(RestoreSession(session));
  if (warm_start_ && session.checkpoint.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const int count, ApplyWarmStart(files_, *warm_start_, *variables));
    progress.Note(StrCat("Warm-started ", count, " variables from ", warm_start_->from));
  }
  TrainSpec limited = spec;
  if (spec.steps) limited.max_steps = session.step + *spec.steps;
  if (limited.max_steps && session.step >= *limited.max_steps) {
    progress.Note(StrCat("Skipping training since max_steps has already saved: the model is at ",
                         "step ", session.step, ", max_steps is ", *limited.max_steps));
    return TrainResult{
        .first_step = session.step, .step = session.step, .checkpoint = session.checkpoint};
  }
  return TrainLoop(session, limited, TrainHooks(limited, config_)).Run(stop);
}

absl::StatusOr<int64_t> Estimator::LoadForInference() {
  if (!inference_) {
    MUSTER_ASSIGN_OR_RETURN(inference_,
                            Variables::Create(model_, config_.seed, /*with_slots=*/false));
  }
  MUSTER_ASSIGN_OR_RETURN(
      const checkpoint::Restored restored,
      checkpoint::RestoreLatest(files_, config_.model_dir, inference_->Tensors(false)));
  restore_note_ = restored.note;
  return restored.step;
}

absl::StatusOr<EvalResult> Estimator::Evaluate(const EvalSpec& spec, Progress& progress) {
  MUSTER_RETURN_IF_ERROR(Validate(spec));
  EvalResult result;
  MUSTER_ASSIGN_OR_RETURN(result.step, LoadForInference());
  if (!restore_note_.empty()) progress.Note(restore_note_);
  MUSTER_ASSIGN_OR_RETURN(
      const auto metrics,
      metrics::NewMetrics(model_.spec.head, spec.metrics.value_or(model_.spec.metrics),
                          model_.spec.features.label.words));
  MUSTER_ASSIGN_OR_RETURN(const auto input, OpenInput(files_, model_, spec.input, spec.input_fn));
  ProgressState state;
  state.verb = "evaluate";
  state.total_steps = input->steps();
  if (spec.steps) {
    state.total_steps =
        state.total_steps > 0 ? std::min(state.total_steps, *spec.steps) : *spec.steps;
  }
  engine::Forward forward;
  while (!spec.steps || state.step < *spec.steps) {
    MUSTER_ASSIGN_OR_RETURN(const InputBatch* batch, input->Next());
    if (batch == nullptr) break;
    MUSTER_RETURN_IF_ERROR(model_.engine->Predict(inference_->views(), batch->features, &forward));
    metrics->Add(forward.logits, batch->features.labels, batch->features.weights);
    metrics->AddLoss(forward.loss_sum, batch->features.rows);
    state.examples += static_cast<uint64_t>(batch->features.rows);
    ++state.step;
    progress.Update(state);
  }
  if (state.examples == 0) return absl::InvalidArgumentError("evaluate: the data has no rows");
  progress.Update(state, /*last=*/true);
  result.examples = state.examples;
  result.seconds = progress.seconds();
  result.metrics = metrics->Values();
  result.metrics.emplace_back("global_step", static_cast<double>(result.step));
  const std::string folder = EvalFolder(config_.model_dir, spec.name);
  MUSTER_RETURN_IF_ERROR(WriteEvalEvents(files_, clock_, folder, result.step, result.metrics));
  return result;
}

absl::StatusOr<uint64_t> Estimator::Predict(const InputSpec& spec, const TakePredictions& take,
                                            Progress& progress) {
  MUSTER_RETURN_IF_ERROR(LoadForInference().status());
  if (!restore_note_.empty()) progress.Note(restore_note_);
  MUSTER_ASSIGN_OR_RETURN(const auto input, Input::Open(files_, model_, spec));
  ProgressState state;
  state.verb = "predict";
  state.total_steps = (static_cast<int64_t>(input->records()) + spec.reader.batch_size - 1) /
                      spec.reader.batch_size;
  engine::Forward forward;
  engine::Predictions predictions;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const InputBatch* batch, input->Next());
    if (batch == nullptr) break;
    MUSTER_RETURN_IF_ERROR(model_.engine->Predict(inference_->views(), batch->features, &forward));
    predictor_->Predict(forward.logits, &predictions);
    MUSTER_RETURN_IF_ERROR(take(*batch, predictions));
    state.examples += static_cast<uint64_t>(batch->features.rows);
    ++state.step;
    progress.Update(state);
  }
  progress.Update(state, /*last=*/true);
  return state.examples;
}

absl::Status Estimator::Export(const std::string& folder) {
  MUSTER_RETURN_IF_ERROR(LoadForInference().status());
  return model::ExportSavedModel(files_, model_.spec, inference_->specs(), inference_->views(),
                                 folder);
}

absl::StatusOr<model::ModelSpec> LoadModelDir(io::FileSystem& files, const std::string& model_dir) {
  const std::string path = io::JoinPath(model_dir, "model.yaml");
  auto spec = model::LoadModelSpec(files, path);
  if (absl::IsNotFound(spec.status())) {
    return absl::NotFoundError(StrCat(model_dir, " is no model folder: it has no model.yaml; give ",
                                      "--model-dir as it was given to 'muster train'"));
  }
  return spec;
}

}  // namespace muster::train
