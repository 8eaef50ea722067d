#include "muster/train/loop/hooks/checkpoint_saver.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/checkpoint/async_saver.h"
#include "muster/checkpoint/tensor_names.h"

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
    saver_->frozen().Prepare(GetOwnTensors(session, {}));
    session.variables.set_frozen(&saver_->frozen());
    return absl::OkStatus();
  }

  // The save at the start is made here and not in AfterCreateSession, where later hooks may still
  // change weights (warm start).
  absl::Status BeforeRun(Session& session) override {
    if (saved_at_start_) return SaveIfRequested(session);
    saved_at_start_ = true;
    // With parameter servers this save waits for the disk: if a server is lost at once, all
    // replicas go back to this checkpoint.
    return Save(session, /*in_background=*/session.state_source == nullptr);
  }

  absl::Status AfterRun(Session& session, const StepValues&) override {
    if (!saver_->busy()) MUSTER_RETURN_IF_ERROR(FinishSave(session));
    MUSTER_RETURN_IF_ERROR(SaveIfRequested(session));
    return IsTime(session) ? Save(session, /*in_background=*/true) : absl::OkStatus();
  }

  // Steps may not come for hours: what was trained is saved when its time has come.
  absl::Status WhileWaiting(Session& session) override {
    if (saver_->busy()) return absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(FinishSave(session));
    return secs_ > 0 && SecondsSinceSave(session) >= secs_ ? Save(session, /*in_background=*/true)
                                                           : absl::OkStatus();
  }

  absl::Status EndEpoch(Session& session) override {
    const auto wants = [](const auto& listener) { return listener->WantsEpochs(); };
    if (std::ranges::none_of(listeners_, wants)) return absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(Save(session, /*in_background=*/false));
    if (session.step != session.checkpoint.step) return absl::OkStatus();  // the state was lost
    for (const auto& listener : listeners_) {
      if (!listener->WantsEpochs()) continue;
      MUSTER_RETURN_IF_ERROR(listener->EndEpoch(session, session.step));
    }
    return absl::OkStatus();
  }

  absl::Status End(Session& session) override {
    MUSTER_RETURN_IF_ERROR(Save(session, /*in_background=*/false, /*last=*/true));
    for (const auto& listener : listeners_) {
      MUSTER_RETURN_IF_ERROR(listener->End(session, session.step));
    }
    session.variables.set_frozen(nullptr);
    return absl::OkStatus();
  }

  // Without the listeners: what they evaluate and export is trained further.
  absl::Status SaveBeforeFailure(Session& session) override {
    MUSTER_RETURN_IF_ERROR(OnSaved(session, saver_->Wait()));
    if (session.step == session.checkpoint.step) return absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(Write(session, {}, /*in_background=*/false));
    session.checkpoint.step = session.step;
    return absl::OkStatus();
  }

 private:
  bool IsTime(const Session& session) const {
    if (steps_ > 0 && session.Reached(steps_)) return true;
    if (secs_ <= 0 || session.step % kStepsBetweenLooks != 0) return false;
    // A disk that is slower than the interval must not hold up the training.
    return SecondsSinceSave(session) >= secs_ && !saver_->busy();
  }

  double SecondsSinceSave(const Session& session) const {
    return static_cast<double>(session.clock.MonotonicNanos() - last_save_nanos_) * 1e-9;
  }

  // This save waits for the disk: the task that requested it ends, and all others continue from
  // this checkpoint.
  absl::Status SaveIfRequested(Session& session) {
    return session.checkpoint.requested ? Save(session, /*in_background=*/false) : absl::OkStatus();
  }

  absl::Status Save(Session& session, bool in_background, bool last = false) {
    MUSTER_RETURN_IF_ERROR(FinishSave(session));
    const bool requested = std::exchange(session.checkpoint.requested, false);
    if (session.step == session.checkpoint.step && !requested) return absl::OkStatus();
    session.model.engine->Rest();  // the saver's thread and evaluating listeners need the cores
    MUSTER_ASSIGN_OR_RETURN(const bool fetched, FetchState(session, last));
    if (!fetched) {
      // A lost state cannot be restored without a checkpoint: if there is none, try again before
      // the next batch.
      saved_at_start_ = saved_at_start_ && session.checkpoint.step >= 0;
      return absl::OkStatus();
    }
    checkpoint::RowFiles rows = std::exchange(session.checkpoint.rows, {});
    if (session.step == session.checkpoint.step) {
      for (const std::string& path : rows.paths) session.files.Remove(path).IgnoreError();
      return absl::OkStatus();
    }
    for (const auto& listener : listeners_) {
      MUSTER_RETURN_IF_ERROR(listener->BeforeSave(session, session.step));
    }
    for (const auto& listener : listeners_) {
      if (listener->WaitsForSave(session, session.step)) in_background = false;
    }
    MUSTER_RETURN_IF_ERROR(Write(session, std::move(rows), in_background));
    pending_step_ = session.checkpoint.step = session.step;
    last_save_nanos_ = session.clock.MonotonicNanos();
    return in_background ? absl::OkStatus() : FinishSave(session);
  }

  absl::Status Write(Session& session, checkpoint::RowFiles rows, bool in_background) {
    const TraceScope scope(session.trace, "save");
    checkpoint::Strings strings;
    if (!session.data.positions.empty()) {
      for (size_t rank = 0; rank < session.data.positions.size(); ++rank) {
        strings.emplace_back(StrCat(checkpoint::kPositionName, "/", rank),
                             session.data.positions[rank]);
      }
    } else if (session.data.position.has_value()) {
      strings.emplace_back(checkpoint::kPositionName,
                           data::SerializePosition(*session.data.position));
    }
    if (session.data.records) {
      strings.emplace_back(checkpoint::kRecordsName, Print(*session.data.records));
    }
    if (session.model.spec.exported && session.data.batch_size > 0) {
      strings.emplace_back(checkpoint::kBatchSizeName, StrCat(session.data.batch_size));
    }
    const auto tensors = GetOwnTensors(session, rows);
    return OnSaved(session,
                   in_background
                       ? saver_->Start(session.step, tensors, std::move(strings), std::move(rows))
                       : saver_->SaveNow(session.step, tensors, strings, rows).status());
  }

  // The tensors that are saved from this process's memory.
  static std::vector<checkpoint::Tensor> GetOwnTensors(const Session& session,
                                                       const checkpoint::RowFiles& rows) {
    auto tensors = session.variables.Tensors(/*with_slots=*/true);
    std::erase_if(tensors, [&](const checkpoint::Tensor& tensor) {
      return tensor.is_elsewhere || std::ranges::any_of(rows.tensors, [&](const auto& each) {
               return each.name == tensor.name;
             });
    });
    return tensors;
  }

  // Returns false if the state was lost meanwhile: the next step restores it; nothing can be saved.
  static absl::StatusOr<bool> FetchState(Session& session, bool last) {
    if (session.state_source == nullptr) return true;
    const absl::Status fetched = session.state_source->FetchState();
    if (!absl::IsAborted(fetched)) return fetched.ok() ? absl::StatusOr<bool>(true) : fetched;
    // There is no next step: this task must be restarted to repeat the lost steps.
    if (last) return absl::UnavailableError(fetched.message());
    session.progress.Note(StrCat("no checkpoint at step ", session.step, ": ", fetched.message()));
    return false;
  }

  // Waits for a save in flight, and calls the listeners' AfterSave for the last save if that was
  // not done yet.
  absl::Status FinishSave(Session& session) {
    MUSTER_RETURN_IF_ERROR(OnSaved(session, saver_->Wait()));
    if (!pending_step_) return absl::OkStatus();
    const int64_t step = *pending_step_;
    pending_step_.reset();
    for (const auto& listener : listeners_) {
      MUSTER_ASSIGN_OR_RETURN(const bool stop, listener->AfterSave(session, step));
      if (stop) session.RequestStop("");
    }
    return absl::OkStatus();
  }

  // Returns the status of a save unchanged, and stores the newest checkpoint on disk in the
  // session.
  absl::Status OnSaved(Session& session, const absl::Status& status) {
    if (status.ok() && !saver_->prefix().empty()) session.checkpoint.prefix = saver_->prefix();
    return status;
  }

  const RunConfig& config_;
  const int64_t steps_;
  const double secs_;
  const std::vector<std::shared_ptr<CheckpointListener>> listeners_;
  std::unique_ptr<checkpoint::AsyncSaver> saver_;
  bool saved_at_start_ = false;
  std::optional<int64_t> pending_step_;  // of a save whose AfterSave was not called yet
  int64_t last_save_nanos_ = 0;
};

// Takes over what was restored beside the tensors.
absl::Status FillSession(const checkpoint::Restored& restored, Session& session) {
  MUSTER_RETURN_IF_ERROR(Annotate(session.variables.CheckDynamic(), restored.prefix));
  if (!restored.note.empty()) session.progress.Warn(restored.note);
  session.step = restored.step;
  if (const auto found = restored.strings.find(checkpoint::kPositionName);
      found != restored.strings.end()) {
    MUSTER_ASSIGN_OR_RETURN(session.data.position, data::ParsePosition(found->second));
  }
  session.data.records.reset();
  if (const auto found = restored.strings.find(checkpoint::kRecordsName);
      found != restored.strings.end()) {
    MUSTER_ASSIGN_OR_RETURN(session.data.records, ParseRecordCounts(found->second));
  }
  for (size_t rank = 0;; ++rank) {
    const auto found = restored.strings.find(StrCat(checkpoint::kPositionName, "/", rank));
    if (found == restored.strings.end()) break;
    session.data.positions.push_back(found->second);
  }
  return absl::OkStatus();
}

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
  if (restored->step == 0 && !restored->broken.empty()) {
    return absl::DataLossError(StrCat(
        "resuming: all checkpoints after step 0 are broken, and ", restored->prefix,
        " would begin the training anew: put back a copy of a newer one, or remove the folder to "
        "start over (",
        absl::StrJoin(restored->broken, "; "), ")"));
  }
  MUSTER_RETURN_IF_ERROR(FillSession(*restored, session));
  session.checkpoint.step = restored->step;
  session.checkpoint.prefix = restored->prefix;
  return absl::OkStatus();
}

absl::Status ContinueFrom(const std::string& origin, Session& session) {
  const auto tensors = session.variables.Tensors(/*with_slots=*/true);
  const bool is_prefix = session.files.Stat(StrCat(origin, ".index")).ok();
  const auto restored = is_prefix ? checkpoint::RestorePrefix(session.files, origin, tensors)
                                  : checkpoint::RestoreLatest(session.files, origin, tensors);
  MUSTER_RETURN_IF_ERROR(Annotate(restored.status(), StrCat("continuing from ", origin)));
  return FillSession(*restored, session);
}

}  // namespace muster::train
