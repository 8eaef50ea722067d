#include "muster/train/loop/hooks/step_counter.h"

#include <algorithm>

namespace muster::train {
namespace {

class StepCounter : public Hook {
 public:
  explicit StepCounter(int64_t steps) : steps_(steps) {}

  absl::Status AfterCreateSession(Session& session) override {
    Restart(session);
    return absl::OkStatus();
  }

  absl::Status AfterRun(Session& session, const StepValues& values) override {
    rows_ += values.rows;
    return session.Reached(steps_) ? Write(session) : absl::OkStatus();
  }

  absl::Status End(Session& session) override { return Write(session); }

 private:
  void Restart(const Session& session) {
    step_ = session.step;
    nanos_ = session.clock.MonotonicNanos();
    rows_ = 0;
  }

  absl::Status Write(Session& session) {
    if (session.step == step_) return absl::OkStatus();
    const int64_t nanos = session.clock.MonotonicNanos() - nanos_;
    const double seconds = std::max(static_cast<double>(nanos) * 1e-9, 1e-9);
    const auto steps = static_cast<double>(session.step - step_);
    MUSTER_RETURN_IF_ERROR(session.events->WriteScalars(
        session.step, {{"global_step/sec", static_cast<float>(steps / seconds)},
                       {"examples/sec", static_cast<float>(rows_ / seconds)}}));
    Restart(session);
    return absl::OkStatus();
  }

  const int64_t steps_;
  int64_t step_ = 0;
  int64_t nanos_ = 0;
  double rows_ = 0;
};

}  // namespace

std::unique_ptr<Hook> NewStepCounter(int64_t steps) { return std::make_unique<StepCounter>(steps); }

}  // namespace muster::train
