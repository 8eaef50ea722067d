#include "muster/train/loop/train_loop.h"

#include <algorithm>
#include <utility>

#include "muster/data/batch_stream_reader.h"
#include "muster/train/input/changed_data.h"
#include "muster/train/input/shards.h"
#include "muster/train/input/told_segments.h"
#include "muster/train/loop/local_strategy.h"

namespace muster::train {
namespace {

int64_t TotalSteps(const TrainSpec& spec, const BatchSource& input, int64_t first_step,
                   int steps_per_batch) {
  int64_t total = input.steps() * steps_per_batch;
  if (spec.shards > 0) {
    // The other shards have the same number of steps left.
    total += total > 0 ? first_step - input.first_step() : 0;
  } else if (spec.fresh_data || !input.has_positions()) {
    total += total > 0 ? first_step : 0;
  }
  if (spec.max_steps) total = total > 0 ? std::min(total, *spec.max_steps) : *spec.max_steps;
  return total;
}

// Sets the epoch of a replica whose data has ended: that of its last batch.
StepValues WithEpoch(StepValues values, int64_t epoch) {
  values.epoch = std::max<int64_t>(epoch, 0);
  return values;
}

}  // namespace

TrainLoop::TrainLoop(Session& session, const TrainSpec& spec,
                     std::vector<std::shared_ptr<Hook>> hooks)
    : session_(session), spec_(spec), hooks_(std::move(hooks)), metrics_(session.model) {
  session_.metrics = &metrics_;
  session_.max_steps = spec_.max_steps.value_or(0);
}

absl::StatusOr<TrainResult> TrainLoop::Run(const std::atomic<bool>& stop) {
  const absl::Status status = RunSteps(stop);
  session_.model.engine->Rest();
  if (!status.ok()) return Fail(status);
  MUSTER_RETURN_IF_ERROR(Finish());
  TrainResult result;
  result.interrupted = session_.ending.interrupted;
  result.first_step = session_.first_step;
  result.step = session_.step;
  result.examples = state_.examples;
  result.seconds = session_.progress.seconds();
  result.loss = metrics_.loss();
  MUSTER_ASSIGN_OR_RETURN(result.metrics, metrics_.Values());
  result.checkpoint = session_.checkpoint.prefix;
  result.stop_reason = session_.ending.reason;
  result.nothing_left = !session_.ending.interrupted && metrics_.epoch() < 0;
  result.bad_records = spec_.replicas != nullptr ? session_.data.all_bad_records
                       : input_ == nullptr       ? 0
                                                 : input_->bad_records();
  if (result.nothing_left && result.step == 0 && result.bad_records > 0) {
    return absl::InvalidArgumentError(
        StrCat("train: none of the data's ", result.bad_records,
               " rows can be read; without --max-bad-records the error says why"));
  }
  result.records = AllRecords(session_);
  result.changes = strategy_->changes();
  return result;
}

absl::Status TrainLoop::Fail(const absl::Status& why) {
  if (strategy_ == nullptr) return why;
  strategy_->Fail(why);
  if (!strategy_->can_save() || !spec_.replicas->is_chief()) return why;
  for (const auto& hook : hooks_) {
    const absl::Status saved = hook->SaveBeforeFailure(session_);
    if (saved.ok()) continue;
    return absl::Status(why.code(),
                        StrCat(why.message(), "; the last step was not saved: ", saved.message()));
  }
  return absl::Status(why.code(), StrCat(why.message(), "; step ", session_.step,
                                         " is saved, from which the same command continues"));
}

absl::Status TrainLoop::RunSteps(const std::atomic<bool>& stop) {
  MUSTER_RETURN_IF_ERROR(Begin());
  const absl::Status opened = Open();
  // A restarted replica may arrive when training is over.
  const bool is_late = spec_.replicas != nullptr && absl::IsCancelled(opened) && !stop.load();
  if (is_late) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(opened);
  while (true) {
    if (strategy_->stops_at_once()) {
      if (session_.ending.requested) break;
      session_.ending.interrupted = stop.load(std::memory_order_relaxed);
      if (session_.ending.interrupted) break;
    }
    MUSTER_ASSIGN_OR_RETURN(const bool more, RunStep(stop));
    if (more) continue;
    session_.model.engine->Rest();
    if (session_.ending.interrupted && IsLeaving()) {
      strategy_->Fail(absl::CancelledError("was told to end (SIGTERM)"));
      break;
    }
    MUSTER_ASSIGN_OR_RETURN(const bool over, WaitForOthers());
    if (!over) continue;
    // The wait for other replicas may have ended because of a signal.
    session_.ending.interrupted |= stop.load(std::memory_order_relaxed);
    break;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> TrainLoop::WaitForOthers() {
  using Ending = Strategy::Ending;
  MUSTER_ASSIGN_OR_RETURN(const Ending ending, strategy_->WaitForOthers());
  state_.examples += static_cast<uint64_t>(strategy_->ConsumeExamples());
  if (ending == Ending::kMoved) MUSTER_RETURN_IF_ERROR(ContinueInNewView());
  return ending == Ending::kOver;
}

void TrainLoop::CountSteps() {
  state_.total_steps = TotalSteps(spec_, *input_, session_.step, strategy_->steps_per_batch());
}

absl::Status TrainLoop::ContinueInNewView() {
  session_.model.engine->Rest();
  MUSTER_RETURN_IF_ERROR(OpenData());
  if (session_.data.shards > 0) CountSteps();
  for (const auto& hook : hooks_) MUSTER_RETURN_IF_ERROR(hook->AfterCreateSession(session_));
  return absl::OkStatus();
}

// Sets the session's position to that of this replica, which knows those of all replicas.
absl::Status TrainLoop::FindPosition() {
  if (session_.data.positions.empty()) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(CheckReplicas(session_, strategy_->size()));
  session_.data.position.reset();
  if (session_.data.shards > 0) return absl::OkStatus();
  if (session_.data.segments != nullptr) {
    MUSTER_ASSIGN_OR_RETURN(const int64_t segment, FindPresentSegment(session_.data.positions));
    first_segment_ = std::max<int64_t>(segment, 0);
  }
  const std::string& own = session_.data.positions[static_cast<size_t>(strategy_->rank())];
  if (own.empty()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const data::Position position, data::ParsePosition(own));
  // A replica that has no batch of the present segment yet takes it from its beginning.
  const bool is_over = session_.data.segments != nullptr && position.epoch < first_segment_;
  if (!is_over) session_.data.position = position;
  return absl::OkStatus();
}

// Converts the position of a checkpoint into the list of positions that replicas exchange.
void TrainLoop::SharePositions() {
  if (spec_.fresh_data) {
    session_.data.position.reset();
    session_.data.positions.clear();
  } else if (session_.data.positions.empty() && session_.data.position.has_value()) {
    session_.data.positions = {data::SerializePosition(*session_.data.position)};
  }
}

absl::Status TrainLoop::OpenData() {
  MUSTER_RETURN_IF_ERROR(FindPosition());
  if (input_ != nullptr && data::IsBatchStream(spec_.input.source) && !spec_.input_fn) {
    // A stream cannot be read again: it continues where it is, even if the state has changed.
    session_.data.position.reset();
    return absl::OkStatus();
  }
  input_.reset();
  const data::Position* const start = session_.data.position ? &*session_.data.position : nullptr;
  MUSTER_ASSIGN_OR_RETURN(input_, session_.data.shards > 0
                                      ? OpenShards()
                                      : OpenInput(session_.files, session_.model, WatchedInput(),
                                                  spec_.input_fn, start));
  if (!input_->has_positions()) session_.data.position.reset();
  if (input_epoch_ < 0 && session_.data.position) input_epoch_ = session_.data.position->epoch;
  strategy_->DataOpened(*input_);
  return absl::OkStatus();
}

// Opens the shards of the data that this replica reads now.
absl::StatusOr<std::unique_ptr<BatchSource>> TrainLoop::OpenShards() {
  std::vector<InputShard> shards;
  for (const int index : GetShards(session_.data.shards, strategy_->rank(), strategy_->size())) {
    InputShard& each = shards.emplace_back();
    each.index = index;
    each.shard = {.index = index, .count = session_.data.shards, .by = spec_.input.source.shard.by};
    if (session_.data.positions.empty()) continue;
    const std::string& position = session_.data.positions[static_cast<size_t>(index)];
    if (position.empty()) continue;
    MUSTER_ASSIGN_OR_RETURN(each.start, data::ParsePosition(position));
  }
  return Input::OpenShards(session_.files, session_.model, WatchedInput(), shards);
}

absl::Status TrainLoop::Begin() {
  for (const auto& hook : hooks_) MUSTER_RETURN_IF_ERROR(hook->Begin(session_));
  SharePositions();
  session_.data.shards = spec_.replicas != nullptr ? spec_.shards : 0;
  session_.data.segments = spec_.replicas != nullptr ? spec_.segments.get() : nullptr;
  if (session_.step == 0 && !session_.data.records) session_.data.records.emplace();
  if (spec_.replicas == nullptr) {
    strategy_ = std::make_unique<LocalStrategy>(session_);
    return absl::OkStatus();
  }
  MUSTER_ASSIGN_OR_RETURN(strategy_, spec_.replicas->NewStrategy(session_));
  return absl::OkStatus();
}

absl::Status TrainLoop::Open() {
  MUSTER_RETURN_IF_ERROR(strategy_->Open());
  if (strategy_->must_fetch_state()) session_.state_source = strategy_.get();
  session_.first_step = session_.step;
  MUSTER_RETURN_IF_ERROR(OpenData());
  MUSTER_RETURN_IF_ERROR(WarnOfChangedData());
  state_.first_step = state_.step = session_.step;
  CountSteps();
  state_.epochs = input_->epochs();
  for (const auto& hook : hooks_) MUSTER_RETURN_IF_ERROR(hook->AfterCreateSession(session_));
  return absl::OkStatus();
}

absl::Status TrainLoop::WarnOfChangedData() {
  const bool continues = session_.data.position.has_value() || !session_.data.positions.empty();
  const std::string& checkpoint = session_.checkpoint.prefix;
  const bool grows = spec_.input.growth != nullptr;  // what was read of it does not change
  if (!continues || grows || !input_->has_positions() || checkpoint.empty()) {
    return absl::OkStatus();
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string warning,
                          MakeChangedDataWarning(session_.files, spec_.input.source, checkpoint));
  if (!warning.empty()) session_.progress.Warn(warning);
  return absl::OkStatus();
}

absl::Status TrainLoop::WhileWaiting() {
  session_.model.engine->Rest();
  for (const auto& hook : hooks_) MUSTER_RETURN_IF_ERROR(hook->WhileWaiting(session_));
  if (told_of_wait_ || !session_.progress.due()) return absl::OkStatus();
  told_of_wait_ = true;
  state_.lag = input_->lag();
  session_.progress.Update(state_);
  return absl::OkStatus();
}

absl::StatusOr<const InputBatch*> TrainLoop::WaitForBatch(const std::atomic<bool>& stop) {
  while (true) {
    MUSTER_RETURN_IF_ERROR(WhileWaiting());
    if (stop || session_.ending.requested) return nullptr;
    MUSTER_ASSIGN_OR_RETURN(const InputBatch* const batch, input_->Next());
    if (batch == nullptr || !batch->is_none_yet) return batch;
  }
}

absl::StatusOr<const InputBatch*> TrainLoop::NextBatch(const std::atomic<bool>& stop) {
  const TraceScope scope(session_.trace, "input wait");
  MUSTER_ASSIGN_OR_RETURN(const InputBatch* batch, input_->Next());
  if (batch != nullptr && batch->is_none_yet && spec_.replicas == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(batch, WaitForBatch(stop));
  }
  session_.data.dropped_at_end = batch == nullptr ? input_->dropped_at_end() : 0;
  session_.data.bad_records = input_->bad_records();
  for (const std::string& warning : input_->ConsumeWarnings()) {
    warned_of_data_ = true;
    // One replica warns for all.
    if (spec_.replicas == nullptr || spec_.replicas->is_chief()) session_.progress.Warn(warning);
  }
  return batch;
}

absl::StatusOr<bool> TrainLoop::RunStep(const std::atomic<bool>& stop) {
  for (const auto& hook : hooks_) MUSTER_RETURN_IF_ERROR(hook->BeforeRun(session_));
  if (strategy_->stops_at_once() && session_.ending.requested) return false;
  MUSTER_ASSIGN_OR_RETURN(const std::optional<StepValues> values, Step(stop));
  if (!values) return false;
  MUSTER_RETURN_IF_ERROR(Report(*values));
  for (const auto& hook : hooks_) MUSTER_RETURN_IF_ERROR(hook->AfterRun(session_, *values));
  return true;
}

absl::StatusOr<std::optional<StepValues>> TrainLoop::Step(const std::atomic<bool>& stop) {
  using Outcome = Strategy::Outcome;
  using Stop = Strategy::Stop;
  while (true) {
    if (IsLeaving()) {
      session_.ending.interrupted = true;
      return std::nullopt;
    }
    const auto next = NextBatch(stop);
    // Data that is waited for in vain is given up where this task is told to end.
    const bool is_given_up = absl::IsCancelled(next.status()) && stop;
    if (!is_given_up) MUSTER_RETURN_IF_ERROR(next.status());
    if (is_given_up && IsLeaving()) continue;
    const InputBatch* batch =
        is_given_up || (*next != nullptr && (*next)->is_none_yet) ? nullptr : *next;
    if (batch != nullptr) MUSTER_RETURN_IF_ERROR(EndEpochBefore(*batch));
    if (strategy_->stops_at_once() && session_.ending.requested) return std::nullopt;
    Stop request = session_.ending.requested ? Stop::kRequested : Stop::kNo;
    // A replica that leaves does not end the others, and its signal may come while it reads a
    // batch. Whoever sends it sets `leaving` before `stop`, so `stop` is read first.
    if (stop && !IsLeaving()) request = Stop::kInterrupted;
    MUSTER_ASSIGN_OR_RETURN(const Strategy::Result result, strategy_->Run(batch, request));
    switch (result.outcome) {
      case Outcome::kDone:
      case Outcome::kNotFinite:
        return batch != nullptr ? result.values : WithEpoch(result.values, metrics_.epoch());
      case Outcome::kMoved:
        MUSTER_RETURN_IF_ERROR(ContinueInNewView());
        break;
      case Outcome::kWaited:
        MUSTER_RETURN_IF_ERROR(WhileWaiting());
        break;
      case Outcome::kInterrupted:
        session_.ending.interrupted = true;
        return std::nullopt;
      case Outcome::kOver:
        session_.ending.interrupted = stop.load(std::memory_order_relaxed);
        return std::nullopt;
    }
  }
}

absl::Status TrainLoop::EndEpochBefore(const InputBatch& batch) {
  const bool ended = input_epoch_ >= 0 && batch.epoch > input_epoch_;
  input_epoch_ = std::max(input_epoch_, batch.epoch);
  if (!ended) return absl::OkStatus();
  for (const auto& hook : hooks_) MUSTER_RETURN_IF_ERROR(hook->EndEpoch(session_));
  return absl::OkStatus();
}

absl::Status TrainLoop::Report(const StepValues& values) {
  const double rows = values.rows;
  MUSTER_RETURN_IF_ERROR(metrics_.Add(values));
  report_loss_.Add(values.loss, rows);
  state_.examples += static_cast<uint64_t>(values.rows);
  told_of_wait_ = false;
  state_.step = session_.step;
  state_.epoch = values.epoch + 1;
  state_.loss = report_loss_.value();
  state_.has_loss = true;
  // The displayed mean covers at most a thousand batches.
  if (report_loss_.rows > 1000.0 * rows) report_loss_ = Mean();
  if (session_.progress.due()) {
    ReportReplicas();
    state_.lag = input_->lag();
    MUSTER_ASSIGN_OR_RETURN(state_.metrics, metrics_.Values());
  }
  session_.progress.Update(state_);
  return absl::OkStatus();
}

void TrainLoop::ReportReplicas() {
  const ReplicaRates* const rates = strategy_->rates();
  if (rates == nullptr) return;
  state_.replicas = rates->rates();
  state_.straggler = rates->straggler();
}

absl::Status TrainLoop::Finish() {
  if (session_.step > session_.first_step) {
    state_.loss = metrics_.loss();
    MUSTER_ASSIGN_OR_RETURN(state_.metrics, metrics_.Values());
    ReportReplicas();
    if (session_.ending.interrupted || session_.ending.requested) {
      session_.progress.Update(state_, /*last=*/true);
    } else {
      session_.progress.Finish(state_);
    }
  }
  for (const auto& hook : hooks_) MUSTER_RETURN_IF_ERROR(hook->End(session_));
  if (IsLeaving()) {
    session_.ending.interrupted = true;
  } else if (spec_.replicas != nullptr && spec_.replicas->is_chief()) {
    const bool may_tell = !session_.ending.interrupted && !spec_.replicas->has_evaluator();
    if (spec_.before_others_end && may_tell) spec_.before_others_end();
    MUSTER_RETURN_IF_ERROR(session_.ending.interrupted ? spec_.replicas->LeaveStopped()
                                                       : spec_.replicas->Leave());
  }
  return session_.events != nullptr ? session_.events->Close() : absl::OkStatus();
}

}  // namespace muster::train
