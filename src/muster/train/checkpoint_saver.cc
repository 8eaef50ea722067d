#include "muster/train/checkpoint_saver.h"

#include <string>
#include <utility>

#include "muster/checkpoint/checkpoint.h"

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
    saver_ = std::make_unique<checkpoint::Saver>(session.files, config_.model_dir,
                                                 config_.keep_checkpoint_max);
    for (const auto& listener : listeners_) MUSTER_RETURN_IF_ERROR(listener->Begin(session));
    return absl::OkStatus();
  }

  absl::Status AfterCreateSession(Session& session) override {
    last_save_nanos_ = session.clock.MonotonicNanos();
    return Save(session);
  }

  absl::Status AfterRun(Session& session, const StepValues&) override {
    return IsTime(session) ? Save(session) : absl::OkStatus();
  }

  absl::Status End(Session& session) override {
    MUSTER_RETURN_IF_ERROR(Save(session));
    for (const auto& listener : listeners_) {
      MUSTER_RETURN_IF_ERROR(listener->End(session, session.step));
    }
    return absl::OkStatus();
  }

 private:
  bool IsTime(const Session& session) const {
    if (steps_ > 0 && session.step % steps_ == 0) return true;
    if (secs_ <= 0 || session.step % kStepsBetweenLooks != 0) return false;
    const int64_t nanos = session.clock.MonotonicNanos() - last_save_nanos_;
    return static_cast<double>(nanos) * 1e-9 >= secs_;
  }

  absl::Status Save(Session& session) {
    if (session.step == session.saved_step) return absl::OkStatus();
    for (const auto& listener : listeners_) {
      MUSTER_RETURN_IF_ERROR(listener->BeforeSave(session, session.step));
    }
    {
      const TraceScope scope(session.trace, "save");
      std::vector<std::pair<std::string, std::string>> strings;
      if (session.position.has_value()) {
        strings.emplace_back(kPositionName, data::SerializePosition(*session.position));
      }
      MUSTER_ASSIGN_OR_RETURN(
          session.checkpoint,
          saver_->Save(session.step, session.variables.Tensors(/*with_slots=*/true), strings));
    }
    session.saved_step = session.step;
    last_save_nanos_ = session.clock.MonotonicNanos();
    for (const auto& listener : listeners_) {
      MUSTER_ASSIGN_OR_RETURN(const bool stop, listener->AfterSave(session, session.step));
      if (stop) session.RequestStop("");
    }
    return absl::OkStatus();
  }

  const RunConfig& config_;
  const int64_t steps_;
  const double secs_;
  const std::vector<std::shared_ptr<CheckpointListener>> listeners_;
  std::unique_ptr<checkpoint::Saver> saver_;
  int64_t last_save_nanos_ = 0;
};

}  // namespace

std::unique_ptr<Hook> NewCheckpointSaver(
    const RunConfig& config, std::vector<std::shared_ptr<CheckpointListener>> listeners) {
  return std::make_unique<CheckpointSaver>(config, std::move(listeners));
}

absl::Status RestoreSession(Session& session) {
  const auto prefix = checkpoint::Latest(session.files, session.config.model_dir);
  if (absl::IsNotFound(prefix.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(prefix.status());
  MUSTER_ASSIGN_OR_RETURN(const auto bundle, formats::BundleReader::Open(session.files, *prefix));
  MUSTER_RETURN_IF_ERROR(Annotate(checkpoint::Restore(*bundle, session.variables.Tensors(true)),
                                  StrCat("resuming from ", *prefix)));
  MUSTER_ASSIGN_OR_RETURN(session.step, checkpoint::GlobalStep(*bundle));
  session.saved_step = session.step;
  session.checkpoint = *prefix;
  if (!bundle->tensors().contains(kPositionName)) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const auto text, bundle->ReadStrings(kPositionName));
  if (text.size() != 1) {
    return absl::DataLossError(StrCat(*prefix, ": ", kPositionName, " is not one text"));
  }
  MUSTER_ASSIGN_OR_RETURN(session.position, data::ParsePosition(text[0]));
  return absl::OkStatus();
}

}  // namespace muster::train
