#include "muster/train/loop/hooks/early_stopping.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "muster/base/nearest.h"
#include "muster/train/loop/evaluations.h"

namespace muster::train {
namespace {

using Kind = EarlyStopping::Kind;

// The clock is read once in this many steps.
constexpr int64_t kStepsBetweenClockLooks = 16;

bool IsBetter(Kind kind, double value, double than) {
  return kind == Kind::kNoIncrease || kind == Kind::kHigher ? value > than : value < than;
}

bool IsThreshold(Kind kind) { return kind == Kind::kHigher || kind == Kind::kLower; }

class EarlyStoppingHook : public Hook {
 public:
  explicit EarlyStoppingHook(EarlyStopping spec) : spec_(std::move(spec)) {}

  absl::Status Begin(Session& session) override {
    if (spec_.eval_folder.empty()) {
      spec_.eval_folder = io::JoinPath(session.config.model_dir, "eval");
    }
    return absl::OkStatus();
  }

  // Evaluations of an earlier run may end this one before its first step.
  absl::Status AfterCreateSession(Session& session) override { return Look(session); }
  absl::Status AfterRun(Session& session, const StepValues&) override { return Look(session); }
  // An evaluation of the epoch ends the training before the next step.
  absl::Status EndEpoch(Session& session) override { return Look(session); }

 private:
  absl::Status Look(Session& session) {
    if (!IsTime(session)) return absl::OkStatus();
    looked_ = true;
    step_ = session.step;
    nanos_ = session.clock.MonotonicNanos();
    evaluations_ = session.evaluations;
    MUSTER_ASSIGN_OR_RETURN(const auto evaluations,
                            ReadEvaluations(session.files, spec_.eval_folder));
    MUSTER_ASSIGN_OR_RETURN(const auto why, WhyStop(spec_, evaluations));
    if (why) session.RequestStop(*why);
    return absl::OkStatus();
  }

  bool IsTime(const Session& session) const {
    if (!looked_ || session.evaluations != evaluations_) return true;
    if (spec_.run_every_steps > 0) return session.step >= step_ + spec_.run_every_steps;
    if (session.step % kStepsBetweenClockLooks != 0) return false;
    return static_cast<double>(session.clock.MonotonicNanos() - nanos_) * 1e-9 >=
           spec_.run_every_secs;
  }

  EarlyStopping spec_;
  bool looked_ = false;
  int64_t step_ = 0;
  int64_t nanos_ = 0;
  int64_t evaluations_ = 0;
};

}  // namespace

absl::StatusOr<std::optional<std::string>> WhyStop(const EarlyStopping& spec,
                                                   const std::map<int64_t, Metrics>& evaluations) {
  std::optional<double> best;
  int64_t best_step = 0;
  for (const auto& [step, metrics] : evaluations) {
    if (step < spec.min_steps) continue;
    MUSTER_ASSIGN_OR_RETURN(const double value, FindMetric(metrics, spec.metric, "early stopping"));
    if (IsThreshold(spec.kind)) {
      if (!IsBetter(spec.kind, value, spec.threshold)) continue;
      return StrCat("at step ", step, " metric '", spec.metric, "' is ", value, ", ",
                    spec.kind == Kind::kHigher ? "higher" : "lower", " than ", spec.threshold);
    }
    // A value that is not a number is never the best one.
    if (!best || std::isnan(*best) || IsBetter(spec.kind, value, *best)) {
      best = value;
      best_step = step;
    }
    if (step - best_step >= spec.max_steps_without) {
      return StrCat("no ", spec.kind == Kind::kNoIncrease ? "increase" : "decrease", " of metric '",
                    spec.metric, "' for ", step - best_step, " steps: it was best, ", *best,
                    ", at step ", best_step);
    }
  }
  return std::nullopt;
}

absl::StatusOr<EarlyStopping> ParseEarlyStopping(const std::string& text) {
  const auto refuse = [&](const std::string& why) {
    return absl::InvalidArgumentError(StrCat(
        "early stopping '", text, "': ", why,
        "; write METRIC:no_increase:STEPS, METRIC:no_decrease:STEPS, ",
        "METRIC:higher:VALUE or METRIC:lower:VALUE, each optionally followed by :min_steps=STEPS"));
  };
  EarlyStopping spec;
  std::vector<std::string> parts = absl::StrSplit(text, ':');
  if (constexpr std::string_view kMinSteps = "min_steps="; parts.back().starts_with(kMinSteps)) {
    const std::string steps = parts.back().substr(kMinSteps.size());
    if (!absl::SimpleAtoi(steps, &spec.min_steps) || spec.min_steps < 0) {
      return refuse(StrCat("'", steps, "' is not a number of steps"));
    }
    parts.pop_back();
  }
  // A metric's name may contain ':': the last two parts are the direction and the value.
  if (parts.size() < 3) return refuse("it must have three parts");
  const std::string value = parts.back();
  parts.pop_back();
  const std::string word = parts.back();
  parts.pop_back();
  spec.metric = absl::StrJoin(parts, ":");
  if (spec.metric.empty()) return refuse("it names no metric");
  const std::vector<std::string> words = {"no_increase", "no_decrease", "higher", "lower"};
  if (word == words[0]) {
    spec.kind = Kind::kNoIncrease;
  } else if (word == words[1]) {
    spec.kind = Kind::kNoDecrease;
  } else if (word == words[2]) {
    spec.kind = Kind::kHigher;
  } else if (word == words[3]) {
    spec.kind = Kind::kLower;
  } else {
    return refuse(StrCat("unknown direction '", word, "'", DidYouMean(word, words)));
  }
  const bool sound = IsThreshold(spec.kind) ? absl::SimpleAtod(value, &spec.threshold)
                                            : absl::SimpleAtoi(value, &spec.max_steps_without) &&
                                                  spec.max_steps_without > 0;
  if (!sound) {
    return refuse(StrCat("'", value, "' is not a ",
                         IsThreshold(spec.kind) ? "number" : "number of steps above 0"));
  }
  return spec;
}

std::unique_ptr<Hook> NewEarlyStopping(EarlyStopping spec) {
  return std::make_unique<EarlyStoppingHook>(std::move(spec));
}

}  // namespace muster::train
