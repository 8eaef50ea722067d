#include "muster/train/loop/step_update.h"

#include "muster/engine/updater.h"

namespace muster::train {

StepUpdate::StepUpdate(const Session& session)
    : session_(session), update_(session.model, session.variables, session.config.threads) {
  const optim::ClipSpec& clip = session.model.spec.clip_gradients;
  if (clip.kind != optim::ClipSpec::Kind::kNone) clip_.emplace(clip, update_);
  if (session.model.applies) {
    apply_.emplace(*session.model.engine->updater(), session.variables, update_);
  }
}

absl::Status StepUpdate::Begin() {
  update_.set_step(session_.step);
  if (apply_) apply_->set_step(session_.step);
  if (session_.model.rate == nullptr) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const float rate,
                          session_.model.engine->updater()->LearningRate(session_.step));
  session_.model.rate->Set(session_.step, rate);
  return absl::OkStatus();
}

engine::GradientSink& StepUpdate::sink() {
  if (apply_) return *apply_;
  if (clip_) return *clip_;
  return update_;
}

absl::Status StepUpdate::Finish() {
  if (clip_) clip_->Finish();
  if (!apply_) return absl::OkStatus();
  const TraceScope scope(session_.trace, "update");
  return apply_->Finish();
}

}  // namespace muster::train
