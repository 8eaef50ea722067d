#include "muster/tune/runner.h"

#include <thread>
#include <vector>

namespace muster::tune {
namespace {

absl::Status RunOneByOne(
    StudyJournal& journal, Objective& objective, const std::atomic<bool>& stop,
    const std::function<void(const Trial& trial, const Outcome& outcome)>& ended) {
  std::optional<Outcome> outcome;
  while (true) {
    if (stop) journal.Stop();
    MUSTER_ASSIGN_OR_RETURN(const std::optional<Trial> trial,
                            journal.Next(outcome ? &*outcome : nullptr));
    if (!trial) return absl::OkStatus();
    const SystemClock clock;
    const int64_t start = clock.MonotonicNanos();
    absl::Status reported;
    auto run = objective.Run(*trial, [&](const Report& report) {
      auto why = journal.AddReport(trial->number, report);
      if (!why.ok()) reported = why.status();
      return why;
    });
    MUSTER_RETURN_IF_ERROR(reported);
    if (absl::IsCancelled(run.status())) {
      outcome.reset();
      journal.Stop();
      continue;
    }
    if (run.ok()) {
      outcome = *std::move(run);
    } else {
      outcome = Outcome{.state = TrialState::kFailed,
                        .error = std::string(ToStd(run.status().message()))};
    }
    outcome->trial = trial->number;
    outcome->seconds = static_cast<double>(clock.MonotonicNanos() - start) * 1e-9;
    ended(*trial, *outcome);
  }
}

}  // namespace

absl::Status RunTrials(
    StudyJournal& journal, Objective& objective, int parallel, const std::atomic<bool>& stop,
    const std::function<void(const Trial& trial, const Outcome& outcome)>& ended) {
  std::vector<absl::Status> results(static_cast<size_t>(parallel));
  {
    std::vector<std::jthread> threads;
    for (absl::Status& result : results) {
      threads.emplace_back([&] { result = RunOneByOne(journal, objective, stop, ended); });
    }
  }
  for (const absl::Status& result : results) MUSTER_RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

}  // namespace muster::tune
