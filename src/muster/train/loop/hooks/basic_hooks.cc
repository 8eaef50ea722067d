#include "muster/train/loop/hooks/basic_hooks.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"

#include "muster/train/loop/mean.h"

namespace muster::train {
namespace {

class StopAtStep : public Hook {
 public:
  explicit StopAtStep(int64_t last_step) : last_step_(last_step) {}
  // A replica that got the state of another one may find that the last step is already done.
  absl::Status BeforeRun(Session& session) override {
    if (session.step >= last_step_) session.RequestStop("");
    return absl::OkStatus();
  }
  absl::Status AfterRun(Session& session, const StepValues&) override {
    if (session.step >= last_step_) session.RequestStop("");
    return absl::OkStatus();
  }

 private:
  const int64_t last_step_;
};

class NanTensor : public Hook {
 public:
  explicit NanTensor(bool fail) : fail_(fail) {}
  absl::Status AfterRun(Session& session, const StepValues& values) override {
    if (std::isfinite(values.loss)) return absl::OkStatus();
    const std::string why =
        StrCat("loss is ", std::isnan(values.loss) ? "NaN" : "infinite", " at step ",
               session.step + 1, ": the model has diverged; lower the learning rate, or look for ",
               "values in the data that are not finite or far too large");
    if (fail_) return absl::FailedPreconditionError(why);
    session.RequestStop(why);
    return absl::OkStatus();
  }

 private:
  const bool fail_;
};

class LoggingTensor : public Hook {
 public:
  explicit LoggingTensor(const LoggingTensorOptions& options) : options_(options) {}

  absl::Status AfterCreateSession(Session& session) override {
    Restart(session);
    return absl::OkStatus();
  }
  absl::Status AfterRun(Session& session, const StepValues& values) override {
    loss_.Add(values.loss, values.rows);
    const bool by_steps = options_.steps > 0 && session.Reached(options_.steps);
    if (by_steps || (options_.secs > 0 && SecondsSince(session) >= options_.secs)) Log(session);
    return absl::OkStatus();
  }
  absl::Status End(Session& session) override {
    if (options_.at_end) Log(session);
    return absl::OkStatus();
  }

 private:
  void Restart(const Session& session) {
    step_ = session.step;
    nanos_ = session.clock.MonotonicNanos();
    loss_ = Mean();
  }

  double SecondsSince(const Session& session) const {
    return static_cast<double>(session.clock.MonotonicNanos() - nanos_) * 1e-9;
  }

  void Log(Session& session) {
    if (session.step == step_) return;
    session.progress.Note(absl::StrFormat("step %d: loss = %.6g (%.3f s)", session.step,
                                          loss_.value(), SecondsSince(session)));
    Restart(session);
  }

  const LoggingTensorOptions options_;
  int64_t step_ = 0;
  int64_t nanos_ = 0;
  Mean loss_;
};

class GlobalStepWaiter : public Hook {
 public:
  explicit GlobalStepWaiter(GlobalStepWaiterOptions options) : options_(std::move(options)) {}

  absl::Status BeforeRun(Session& session) override {
    if (done_) return absl::OkStatus();
    const int64_t start = session.clock.MonotonicNanos();
    while (true) {
      MUSTER_ASSIGN_OR_RETURN(const int64_t step, options_.read_step());
      if (step >= options_.wait_until) break;
      const double waited = static_cast<double>(session.clock.MonotonicNanos() - start) * 1e-9;
      if (waited >= options_.limit_secs) {
        return absl::DeadlineExceededError(StrCat("waiting for global step ", options_.wait_until,
                                                  ": it is ", step, " after ", waited,
                                                  " s; is the chief training?"));
      }
      if (!options_.pause()) {
        session.RequestStop("");
        break;
      }
    }
    done_ = true;
    return absl::OkStatus();
  }

 private:
  const GlobalStepWaiterOptions options_;
  bool done_ = false;
};

class FinalOps : public Hook {
 public:
  explicit FinalOps(std::function<absl::Status(Session&)> run) : run_(std::move(run)) {}
  absl::Status End(Session& session) override { return run_(session); }

 private:
  const std::function<absl::Status(Session&)> run_;
};

}  // namespace

std::unique_ptr<Hook> NewStopAtStep(int64_t last_step) {
  return std::make_unique<StopAtStep>(last_step);
}
std::unique_ptr<Hook> NewNanTensor(bool fail) { return std::make_unique<NanTensor>(fail); }
std::unique_ptr<Hook> NewLoggingTensor(const LoggingTensorOptions& options) {
  return std::make_unique<LoggingTensor>(options);
}
std::unique_ptr<Hook> NewGlobalStepWaiter(GlobalStepWaiterOptions options) {
  return std::make_unique<GlobalStepWaiter>(std::move(options));
}
std::unique_ptr<Hook> NewFinalOps(std::function<absl::Status(Session&)> run) {
  return std::make_unique<FinalOps>(std::move(run));
}

}  // namespace muster::train
