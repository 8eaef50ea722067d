// Estimator: evaluation, prediction and export of a trained model.
#include "muster/score/inference.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "muster/checkpoint/checkpoint.h"
#include "muster/data/batch_stream_reader.h"
#include "muster/features/measure.h"
#include "muster/formats/event.h"
#include "muster/model/keras/exported_saved_model.h"
#include "muster/model/saved_model/saved_model.h"
#include "muster/train/estimator.h"
#include "muster/train/evaluation_metrics.h"
#include "muster/train/input/input.h"

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

constexpr double kNoLoss = std::numeric_limits<double>::quiet_NaN();

using HookList = std::vector<std::shared_ptr<Hook>>;

HookList Joined(HookList first, const HookList& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Calls the hooks in their order, up to the first error.
template <typename Call>
absl::Status CallEach(const HookList& hooks, const Call& call) {
  for (const auto& hook : hooks) MUSTER_RETURN_IF_ERROR(call(*hook));
  return absl::OkStatus();
}

}  // namespace

// The state that evaluations and predictions share.
struct Estimator::Inference {
  ModeModel* mode = nullptr;
  HookList hooks = {};
  Session session;
  checkpoint::Restored restored = {};
  std::unique_ptr<BatchSource> input = {};
  ProgressState state = {};
  std::optional<score::ForwardPass> forward = {};
  uint64_t bad_records = 0;  // so far

  // Counts the bad records that were left out before the batch, or before the end if `batch` is
  // null, and gives them to `reject`.
  absl::Status Reject(const InputBatch* batch, const RejectRecord& reject) {
    const auto bad =
        batch != nullptr ? std::span<const data::BadRecord>(batch->bad) : input->bad_at_end();
    bad_records += bad.size();
    if (!reject) return absl::OkStatus();
    for (const data::BadRecord& record : bad) MUSTER_RETURN_IF_ERROR(reject(record));
    return absl::OkStatus();
  }

  void Warn(const InputSpec& spec) {
    if (!spec.watch_words) return;
    for (const std::string& each : input->ConsumeWarnings()) session.progress.Warn(each);
  }
};

// The input of an evaluation, with the groups that its metrics need.
InputSpec Estimator::GroupedInput(const EvalSpec& spec) const {
  InputSpec input = spec.input;
  input.group = spec.metrics.value_or(model().spec.metrics).group;
  return input;
}

absl::StatusOr<std::unique_ptr<Estimator::Inference>> Estimator::OpenInference(
    ModeKeys key, const InputSpec& files, const InputFn& input_fn, const HookList& user_hooks,
    Progress& progress) {
  MUSTER_ASSIGN_OR_RETURN(ModeModel* const mode, ModelFor(key));
  const bool evaluates = key == ModeKeys::kEval;
  MUSTER_ASSIGN_OR_RETURN(checkpoint::Restored restored,
                          LoadForInference(mode, evaluates || fall_back_));
  if (!restore_note_.empty()) progress.Warn(restore_note_);
  std::unique_ptr<Inference> opened(
      new Inference{.mode = mode,
                    .hooks = Joined(user_hooks, evaluates ? mode->custom.evaluation_hooks
                                                          : mode->custom.prediction_hooks),
                    .session = {.mode = key,
                                .files = files_,
                                .clock = clock_,
                                .config = config_,
                                .model = mode->model,
                                .variables = *inference_,
                                .events = nullptr,
                                .progress = progress,
                                .first_step = restored.step,
                                .step = restored.step}});
  opened->restored = std::move(restored);
  MUSTER_ASSIGN_OR_RETURN(
      opened->forward,
      score::ForwardPass::Create(mode->model, *inference_,
                                 score::ForwardPass::IndexKeys(mode->model.spec, *inference_)));
  Session& session = opened->session;
  MUSTER_RETURN_IF_ERROR(CallEach(opened->hooks, [&](Hook& hook) { return hook.Begin(session); }));
  MUSTER_ASSIGN_OR_RETURN(opened->input, OpenInput(files_, mode->model, files, input_fn));
  MUSTER_RETURN_IF_ERROR(
      CallEach(opened->hooks, [&](Hook& hook) { return hook.AfterCreateSession(session); }));
  opened->state.verb = evaluates ? "evaluate" : "predict";
  opened->state.total_steps = opened->input->steps();
  return opened;
}

absl::StatusOr<checkpoint::Restored> Estimator::LoadForInference(ModeModel* mode, bool fall_back) {
  // One mode's weights at a time: with a model function each mode has its own variables.
  if (inference_mode_ != mode) inference_.reset();
  inference_mode_ = mode;
  if (!inference_) {
    MUSTER_ASSIGN_OR_RETURN(inference_,
                            Variables::Create(mode->model, config_.seed, /*with_slots=*/false));
  }
  restore_note_ = restored_checkpoint_ = "";
  MUSTER_ASSIGN_OR_RETURN(
      checkpoint::Restored restored,
      score::LoadWeights(
          files_, mode->model.spec,
          {.model_dir = config_.model_dir, .checkpoint = checkpoint_, .fall_back = fall_back},
          *inference_));
  restore_note_ = restored.note;
  restored_checkpoint_ = restored.prefix;
  return restored;
}

absl::Status Estimator::RunEvaluation(Inference& run, const EvalSpec& spec,
                                      const TakeForward& take) {
  auto& [mode, hooks, session, restored, input, state, pass, bad_records] = run;
  const std::optional<int64_t>& steps = spec.steps;
  if (steps) {
    state.total_steps = state.total_steps > 0 ? std::min(state.total_steps, *steps) : *steps;
  }
  // Without hooks only the engine uses the weights.
  if (hooks.empty()) MUSTER_RETURN_IF_ERROR(pass->Freeze());
  engine::Forward forward;
  while (!session.ending.requested && (!steps || state.step < *steps)) {
    if (spec.stop != nullptr && *spec.stop) {
      return absl::CancelledError("the evaluation was stopped by a signal");
    }
    MUSTER_RETURN_IF_ERROR(
        CallEach(hooks, [&](Hook& hook) { return hook.BeforeRun(run.session); }));
    MUSTER_ASSIGN_OR_RETURN(const InputBatch* batch, input->Next());
    MUSTER_RETURN_IF_ERROR(run.Reject(batch, spec.reject));
    run.Warn(spec.input);
    if (batch == nullptr) break;
    const features::FeatureBatch& features = batch->features;
    MUSTER_RETURN_IF_ERROR(pass->Run(features, &forward));
    take(forward, *batch);
    state.examples += static_cast<uint64_t>(features.rows);
    ++state.step;
    session.progress.Update(state);
    const double loss = features.rows > 0 ? forward.loss_sum / features.rows : 0;
    const StepValues values{loss, loss, features.rows, batch->epoch};
    MUSTER_RETURN_IF_ERROR(
        CallEach(hooks, [&](Hook& hook) { return hook.AfterRun(run.session, values); }));
  }
  return CallEach(hooks, [&](Hook& hook) { return hook.End(run.session); });
}

absl::StatusOr<EvalResult> Estimator::Evaluate(const EvalSpec& spec, Progress& progress,
                                               const BeforeEvents& before_events) {
  MUSTER_RETURN_IF_ERROR(Validate(spec));
  MUSTER_ASSIGN_OR_RETURN(const auto opened, OpenInference(ModeKeys::kEval, GroupedInput(spec),
                                                           spec.input_fn, spec.hooks, progress));
  MUSTER_ASSIGN_OR_RETURN(EvaluationMetrics metrics,
                          EvaluationMetrics::Create(*opened->mode, spec));
  MUSTER_RETURN_IF_ERROR(
      RunEvaluation(*opened, spec, [&](const engine::Forward& forward, const InputBatch& batch) {
        metrics.Add(forward, batch);
      }));
  progress.Finish(opened->state);
  MUSTER_RETURN_IF_ERROR(metrics.Finish());
  return Conclude(spec,
                  {.step = opened->restored.step,
                   .checkpoint = opened->restored.prefix,
                   .examples = opened->state.examples,
                   .bad_records = opened->bad_records,
                   .seconds = progress.seconds(),
                   .metrics = metrics.Values()},
                  before_events);
}

absl::StatusOr<EvalResult> Estimator::EvaluateQuietly(const EvalSpec& spec) {
  Progress silent(ProgressStyle::kNone, /*fd=*/2, clock_);
  MUSTER_ASSIGN_OR_RETURN(const auto opened, OpenInference(ModeKeys::kEval, GroupedInput(spec),
                                                           spec.input_fn, {}, silent));
  MUSTER_ASSIGN_OR_RETURN(EvaluationMetrics metrics,
                          EvaluationMetrics::Create(*opened->mode, spec));
  MUSTER_RETURN_IF_ERROR(
      RunEvaluation(*opened, spec, [&](const engine::Forward& forward, const InputBatch& batch) {
        metrics.Add(forward, batch);
      }));
  MUSTER_RETURN_IF_ERROR(metrics.Finish());
  return EvalResult{.step = opened->restored.step,
                    .checkpoint = opened->restored.prefix,
                    .examples = opened->state.examples,
                    .metrics = metrics.Values()};
}

absl::Status Estimator::CheckData(const EvalSpec& spec) {
  if (spec.input_fn || spec.input.growth || data::IsBatchStream(spec.input.source)) {
    return absl::OkStatus();
  }
  MUSTER_ASSIGN_OR_RETURN(ModeModel* const mode, ModelFor(ModeKeys::kEval));
  // An evaluator may start before the first pass over the training data has ended.
  if (!features::FindUnmeasured(mode->model.spec.features).empty()) return absl::OkStatus();
  const auto check = [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const auto input, Input::Open(files_, mode->model, spec.input));
    return input->Next().status();
  };
  return Annotate(check(), "the data to evaluate on");
}

absl::StatusOr<EvalResult> Estimator::Conclude(const EvalSpec& spec, EvalResult result,
                                               const BeforeEvents& before_events) {
  if (result.examples == 0) {
    if (spec.input.growth) return absl::OutOfRangeError("evaluate: no record is held back yet");
    return absl::InvalidArgumentError(
        result.bad_records == 0
            ? "evaluate: the data has no rows"
            : StrCat("evaluate: none of the data's ", result.bad_records,
                     " rows can be read; without --max-bad-records the error says why"));
  }
  result.metrics.emplace_back("global_step", static_cast<double>(result.step));
  if (before_events) MUSTER_RETURN_IF_ERROR(before_events(result));
  const std::string folder = EvalFolder(config_.model_dir, spec.name);
  const absl::Status written = WriteEvalEvents(files_, clock_, folder, result.step, result.metrics);
  if (!written.ok() && spec.needs_events) {
    return absl::Status(
        written.code(),
        StrCat("writing the event file of the evaluation: ", written.message(),
               "; --exporter and --early-stop read it: make it possible to write there, and the ",
               "same command continues"));
  }
  result.events = written;
  return result;
}

absl::StatusOr<metrics::State> Estimator::EvaluatePart(const EvalSpec& spec, Progress& progress) {
  MUSTER_RETURN_IF_ERROR(Validate(spec));
  MUSTER_ASSIGN_OR_RETURN(const auto opened, OpenInference(ModeKeys::kEval, GroupedInput(spec),
                                                           spec.input_fn, spec.hooks, progress));
  MUSTER_ASSIGN_OR_RETURN(EvaluationMetrics metrics,
                          EvaluationMetrics::Create(*opened->mode, spec));
  MUSTER_RETURN_IF_ERROR(metrics.CheckMergeable());
  MUSTER_RETURN_IF_ERROR(
      RunEvaluation(*opened, spec, [&](const engine::Forward& forward, const InputBatch& batch) {
        metrics.Add(forward, batch);
      }));
  progress.Finish(opened->state);
  metrics::State state = metrics.head().GetState();
  state.step = opened->restored.step;
  state.rows = opened->state.examples;
  state.bad_records = opened->bad_records;
  return state;
}

absl::StatusOr<EvalResult> Estimator::MergeEvaluation(const EvalSpec& spec, const NextState& next,
                                                      Progress& progress) {
  MUSTER_RETURN_IF_ERROR(Validate(spec));
  MUSTER_ASSIGN_OR_RETURN(ModeModel* const mode, ModelFor(ModeKeys::kEval));
  MUSTER_ASSIGN_OR_RETURN(EvaluationMetrics metrics, EvaluationMetrics::Create(*mode, spec));
  MUSTER_RETURN_IF_ERROR(metrics.CheckMergeable());
  EvalResult result = {.checkpoint = checkpoint_};
  for (bool first = true;; first = false) {
    MUSTER_ASSIGN_OR_RETURN(const std::optional<metrics::State> state, next());
    if (!state) break;
    if (!first && state->step != result.step) {
      return absl::FailedPreconditionError(
          StrCat("evaluate: one part used step ", result.step, ", another one step ", state->step));
    }
    result.step = state->step;
    result.examples += state->rows;
    result.bad_records += state->bad_records;
    MUSTER_RETURN_IF_ERROR(metrics.head().Merge(*state));
  }
  MUSTER_RETURN_IF_ERROR(metrics.Finish());
  result.seconds = progress.seconds();
  result.metrics = metrics.Values();
  return Conclude(spec, std::move(result), {});
}

absl::StatusOr<PredictResult> Estimator::Predict(const InputSpec& spec, const TakePredictions& take,
                                                 Progress& progress) {
  return Predict(PredictSpec{.input = spec}, take, progress);
}

absl::StatusOr<PredictResult> Estimator::Predict(const PredictSpec& spec,
                                                 const TakePredictions& take, Progress& progress) {
  MUSTER_ASSIGN_OR_RETURN(const auto opened, OpenInference(ModeKeys::kPredict, spec.input,
                                                           spec.input_fn, spec.hooks, progress));
  auto& [mode, hooks, session, restored, input, state, pass, bad_records] = *opened;
  Session& run = session;
  MUSTER_RETURN_IF_ERROR(pass->Freeze());
  engine::Forward forward;
  engine::Predictions predictions;
  while (!session.ending.requested) {
    MUSTER_RETURN_IF_ERROR(CallEach(hooks, [&](Hook& hook) { return hook.BeforeRun(run); }));
    MUSTER_ASSIGN_OR_RETURN(const InputBatch* batch, input->Next());
    MUSTER_RETURN_IF_ERROR(opened->Reject(batch, spec.reject));
    opened->Warn(spec.input);
    if (batch == nullptr) break;
    MUSTER_RETURN_IF_ERROR(pass->Run(batch->features, &forward));
    MUSTER_RETURN_IF_ERROR(predictor_->Predict(forward, batch->features.rows, &predictions));
    const StepValues values{kNoLoss, kNoLoss, batch->features.rows, batch->epoch};
    MUSTER_RETURN_IF_ERROR(CallEach(hooks, [&](Hook& hook) { return hook.AfterRun(run, values); }));
    MUSTER_RETURN_IF_ERROR(take(*batch, predictions));
    state.examples += static_cast<uint64_t>(batch->features.rows);
    ++state.step;
    progress.Update(state);
  }
  MUSTER_RETURN_IF_ERROR(CallEach(hooks, [&](Hook& hook) { return hook.End(run); }));
  progress.Finish(state);
  return PredictResult{.step = restored.step,
                       .checkpoint = restored.prefix,
                       .examples = state.examples,
                       .bad_records = bad_records};
}

absl::Status Estimator::Export(const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(ModeModel* const mode, ModelFor(ModeKeys::kPredict));
  if (model_fn_ && !mode->custom.export_model) {
    return absl::UnimplementedError(
        "exporting: only EstimatorSpec::export_model of the model function can say what the graph "
        "of a custom model is in TensorFlow");
  }
  MUSTER_ASSIGN_OR_RETURN(const checkpoint::Restored restored, LoadForInference(mode, fall_back_));
  if (mode->model.spec.exported) {
    return model::ExportServing(files_, *mode->model.spec.exported, inference_->specs(),
                                inference_->views(), folder, restored.step);
  }
  if (model_fn_) {
    return mode->custom.export_model(files_, inference_->specs(), inference_->views(), folder);
  }
  // A table that grows is exported with one more row, of zeros, for all keys without a row.
  std::vector<std::span<const int64_t>> keys(inference_->specs().size());
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto* const image = inference_->dynamic_tables(static_cast<int>(i));
    if (image != nullptr) keys[i] = image->keys;
  }
  return model::ExportSavedModel(files_, mode->model.spec, inference_->specs(), inference_->views(),
                                 folder, keys, restored.step);
}

}  // namespace muster::train
