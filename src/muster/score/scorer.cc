#include "muster/score/scorer.h"

namespace muster::score {
namespace {

absl::StatusOr<model::Model> Build(const model::ModelSpec& spec, const ScorerOptions& options) {
  return model::BuildModel(spec,
                           {.native = {.threads = options.threads, .inference = options.precision},
                            .tensorflow = options.tensorflow});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Scorer>> Scorer::Open(io::FileSystem& files,
                                                     const ScorerOptions& options) {
  if (options.lanes < 1 || options.threads < 1) {
    return absl::InvalidArgumentError(
        StrCat("a Scorer with ", options.lanes, " lanes with ", options.threads,
               " threads: it needs at least one lane with at least one thread"));
  }
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec spec,
                          LoadModelDir(files, options.weights.model_dir));
  MUSTER_ASSIGN_OR_RETURN(model::Model model, Build(spec, options));
  MUSTER_ASSIGN_OR_RETURN(engine::Predictor predictor, model::NewPredictor(model));
  std::unique_ptr<Scorer> scorer(new Scorer(std::move(model), std::move(predictor)));
  MUSTER_ASSIGN_OR_RETURN(scorer->variables_, train::Variables::Create(scorer->model_, /*seed=*/0,
                                                                       /*with_slots=*/false));
  MUSTER_ASSIGN_OR_RETURN(scorer->restored_,
                          LoadWeights(files, spec, options.weights, *scorer->variables_));
  MUSTER_RETURN_IF_ERROR(scorer->AddLanes(options));
  return scorer;
}

absl::Status Scorer::AddLanes(const ScorerOptions& options) {
  const auto index = ForwardPass::IndexKeys(model_.spec, *variables_);
  for (int i = 0; i < options.lanes; ++i) {
    MUSTER_ASSIGN_OR_RETURN(model::Model model, Build(model_.spec, options));
    MUSTER_ASSIGN_OR_RETURN(ForwardPass forward, ForwardPass::Create(model, *variables_, index));
    MUSTER_RETURN_IF_ERROR(forward.Freeze());
    lanes_.push_back(
        std::make_unique<Lane>(Lane{.model = std::move(model), .forward = std::move(forward)}));
  }
  for (const auto& lane : lanes_) {
    lane->thread =
        std::jthread([this, &lane = *lane](const std::stop_token& stop) { Work(stop, lane); });
  }
  return absl::OkStatus();
}

absl::Status Scorer::Score(const features::FeatureBatch& batch, Scores* scores) {
  Call call{.batch = batch, .scores = *scores};
  std::unique_lock lock(mutex_);
  calls_.push_back(&call);
  called_.notify_one();
  call.ended.wait(lock, [&call] { return call.done; });
  return std::move(call.status);
}

void Scorer::Work(const std::stop_token& stop, Lane& lane) {
  while (Call* const call = Next(stop, lane)) {
    absl::Status status = Compute(lane, *call);
    const std::lock_guard lock(mutex_);
    call->status = std::move(status);
    call->done = true;
    call->ended.notify_one();  // with the lock held: the call ends with its caller
  }
}

Scorer::Call* Scorer::Next(const std::stop_token& stop, Lane& lane) {
  std::unique_lock lock(mutex_);
  if (calls_.empty()) {
    lock.unlock();
    lane.model.engine->Rest();
    lock.lock();
  }
  if (!called_.wait(lock, stop, [this] { return !calls_.empty(); })) return nullptr;
  Call* const call = calls_.front();
  calls_.pop_front();
  return call;
}

absl::Status Scorer::Compute(Lane& lane, const Call& call) const {
  MUSTER_RETURN_IF_ERROR(lane.forward.Run(call.batch, &call.scores.forward));
  return predictor_.Predict(call.scores.forward, call.batch.rows, &call.scores.predictions);
}

}  // namespace muster::score
