#include "muster/train/checkpoint_saver.h"

#include <optional>
#include <string>
#include <utility>

#include "muster/checkpoint/async_saver.h"

namespace muster::train {
namespace {

// The clock is read once in this many steps.
constexpr int64_t kStepsBetweenLooks = 16;

class CheckpointSaver : public Hook {
 public:
  CheckpointSaver(const RunConfig& config,
                  std::vector<std::shared_ptr<CheckpointListener>> listeners)
      : config_(config),
        steps_(config.checkpoint_steps()),
        secs_(config.checkpoint_secs()),
        listeners_(std::move(listeners)) {}

  absl::Status Begin(Session& session) override {
    saver_ = std::make_unique<checkpoint::AsyncSaver>(
        session.files, session.clock, config_.model_dir,
        checkpoint::SaverOptions{.keep_max = config_.keep_checkpoint_max,
                                 .keep_every_n_hours = config_.keep_checkpoint_every_n_hours});
    for (const auto& listener : listeners_) MUSTER_RETURN_IF_ERROR(listener->Begin(session));
    return absl::OkStatus();
  }

  absl::Status AfterCreateSession(Session& session) override {
    MUSTER_RETURN_IF_ERROR(FinishSave(session));
    last_save_nanos_ = session.clock.MonotonicNanos();
    saved_at_start_ = false;
    saver_->frozen().Prepare(session.variables.Tensors(/*with_slots=*/true));
    session.variables.set_frozen(&saver_->frozen());
    return absl::OkStatus();
  }

  // The save at the start comes here: until now other hooks may have changed weights (warm start).
  absl::Status BeforeRun(Session& session) override {
    if (saved_at_start_) return absl::OkStatus();
    saved_at_start_ = true;
    // A server that is lost right away must find it.
    return Save(session, /*in_background=*/!session.fetch_state);
  }

  absl::Status AfterRun(Session& session, const StepValues&) override {
    if (!saver_->busy()) MUSTER_RETURN_IF_ERROR(FinishSave(session));
    return IsTime(session) ? Save(session, /*in_background=*/true) : absl::OkStatus();
  }

  absl::Status End(Session& session) override {
    MUSTER_RETURN_IF_ERROR(Save(session, /*in_background=*/false));
    for (const auto& listener : listeners_) {
      MUSTER_RETURN_IF_ERROR(listener->End(session, session.step));
    }
    session.variables.set_frozen(nullptr);
    return absl::OkStatus();
  }

 private:
  bool IsTime(const Session& session) const {
    if (steps_ > 0 && session.Reached(steps_)) return true;
    if (secs_ <= 0 || session.step % kStepsBetweenLooks != 0) return false;
    const int64_t nanos = session.clock.MonotonicNanos() - last_save_nanos_;
    // A disk that is slower than that must not hold up the training.
    return static_cast<double>(nanos) * 1e-9 >= secs_ && !saver_->busy();
  }

  absl::Status Save(Session& session, bool in_background) {
    MUSTER_RETURN_IF_ERROR(FinishSave(session));
    if (session.step == session.saved_step) return absl::OkStatus();
    session.model.engine->Rest();  // the saver has a thread, and listeners evaluate
    if (session.fetch_state) MUSTER_RETURN_IF_ERROR(session.fetch_state());
    for (const auto& listener : listeners_) {
      MUSTER_RETURN_IF_ERROR(listener->BeforeSave(session, session.step));
    }
    for (const auto& listener : listeners_) {
      if (listener->WaitsForSave(session, session.step)) in_background = false;
    }
    {
      const TraceScope scope(session.trace, "save");
      checkpoint::Strings strings;
      if (!session.positions.empty()) {
        for (size_t rank = 0; rank < session.positions.size(); ++rank) {
          strings.emplace_back(StrCat(kPositionName, "/", rank), session.positions[rank]);
        }
      } else if (session.position.has_value()) {
        strings.emplace_back(kPositionName, data::SerializePosition(*session.position));
      }
      if (session.records) strings.emplace_back(kRecordsName, Print(*session.records));
      const auto tensors = session.variables.Tensors(/*with_slots=*/true);
      MUSTER_RETURN_IF_ERROR(Written(
          session, in_background ? saver_->Start(session.step, tensors, std::move(strings))
                                 : saver_->SaveNow(session.step, tensors, strings).status()));
    }
    untold_step_ = session.saved_step = session.step;
    last_save_nanos_ = session.clock.MonotonicNanos();
    return in_background ? absl::OkStatus() : FinishSave(session);
  }

  // Waits for a save in flight, and tells the listeners of the last save if they do not know yet.
  absl::Status FinishSave(Session& session) {
    MUSTER_RETURN_IF_ERROR(Written(session, saver_->Wait()));
    if (!untold_step_) return absl::OkStatus();
    const int64_t step = *untold_step_;
    untold_step_.reset();
    for (const auto& listener : listeners_) {
      MUSTER_ASSIGN_OR_RETURN(const bool stop, listener->AfterSave(session, step));
      if (stop) session.RequestStop("");
    }
    return absl::OkStatus();
  }

  // Passes on how a save went, and tells the session of the newest that is on disk.
  absl::Status Written(Session& session, const absl::Status& status) {
    if (status.ok() && !saver_->prefix().empty()) session.checkpoint = saver_->prefix();
    return status;
  }

  const RunConfig& config_;
  const int64_t steps_;
  const double secs_;
  const std::vector<std::shared_ptr<CheckpointListener>> listeners_;
  std::unique_ptr<checkpoint::AsyncSaver> saver_;
  bool saved_at_start_ = false;
  std::optional<int64_t> untold_step_;  // of a save that the listeners have not heard the end of
  int64_t last_save_nanos_ = 0;
};

}  // namespace

std::unique_ptr<Hook> NewCheckpointSaver(
    const RunConfig& config, std::vector<std::shared_ptr<CheckpointListener>> listeners) {
  return std::make_unique<CheckpointSaver>(config, std::move(listeners));
}

absl::Status RestoreSession(Session& session) {
  const auto tensors = session.variables.Tensors(/*with_slots=*/true);
  auto restored = checkpoint::RestoreLatest(session.files, session.config.model_dir, tensors);
  if (absl::IsNotFound(restored.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(Annotate(restored.status(), "resuming"));
  MUSTER_RETURN_IF_ERROR(Annotate(session.variables.CheckGrown(), restored->prefix));
  if (!restored->note.empty()) session.progress.Note(restored->note);
  session.step = session.saved_step = restored->step;
  session.checkpoint = restored->prefix;
  if (const auto found = restored->strings.find(kPositionName); found != restored->strings.end()) {
    MUSTER_ASSIGN_OR_RETURN(session.position, data::ParsePosition(found->second));
  }
  session.records.reset();
  if (const auto found = restored->strings.find(kRecordsName); found != restored->strings.end()) {
    MUSTER_ASSIGN_OR_RETURN(session.records, ParseRecordCounts(found->second));
  }
  for (size_t rank = 0;; ++rank) {
    const auto found = restored->strings.find(StrCat(kPositionName, "/", rank));
    if (found == restored->strings.end()) break;
    session.positions.push_back(found->second);
  }
  return absl::OkStatus();
}

}  // namespace muster::train
