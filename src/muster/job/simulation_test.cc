// Reconcile through the seeded histories of simulated_job.h; bugs planted around it show that each
// invariant can fail.
#include "muster/base/simulation.h"

#include <vector>

#include "gtest/gtest.h"
#include "muster/job/reconcile.h"
#include "muster/job/simulated_job.h"

namespace muster::job {
namespace {

using ObservedPhase = TaskObservation::Phase;

TEST(Simulation, TheInvariantsHold) {
  ExpectInvariantsHold([](uint64_t seed) { return Simulation(seed, Reconcile).Run(); });
}

PlantedBug Bug(const char* name, const char* invariant, const ReconcileFunction& reconcile) {
  return {name, invariant,
          [reconcile](uint64_t seed) { return Simulation(seed, reconcile).Run(); }};
}

Reconciled TakesAbsenceForAnEnd(const JobSpec& spec, const JobStatus& status,
                                const Observed& observed, const Now& now) {
  Observed changed = observed;
  for (const auto& [id, task] : status.tasks) {
    bool seen = false;
    for (const TaskObservation& each : observed.tasks) {
      seen = seen || (each.id == id && each.incarnation == task.incarnation);
    }
    if (seen || !task.live()) continue;
    changed.tasks.push_back(
        {.id = id, .incarnation = task.incarnation, .phase = ObservedPhase::kGone});
  }
  return Reconcile(spec, status, changed, now);
}

Reconciled IgnoresIncarnations(const JobSpec& spec, const JobStatus& status,
                               const Observed& observed, const Now& now) {
  Observed changed = observed;
  for (TaskObservation& each : changed.tasks) {
    const auto task = status.tasks.find(each.id);
    if (task != status.tasks.end()) each.incarnation = task->second.incarnation;
  }
  return Reconcile(spec, status, changed, now);
}

Reconciled ForgetsTheBudget(const JobSpec& spec, const JobStatus& status, const Observed& observed,
                            const Now& now) {
  JobStatus changed = status;
  changed.recent_restarts.clear();
  for (auto& [id, task] : changed.tasks) task.recent_restarts.clear();
  return Reconcile(spec, changed, observed, now);
}

Reconciled SleepsIndefinitely(const JobSpec& spec, const JobStatus& status,
                              const Observed& observed, const Now& now) {
  Reconciled result = Reconcile(spec, status, observed, now);
  if (result.actions.empty()) result.wake_after = 1e12;
  return result;
}

Reconciled StartsBeforeTheOldOneHasEnded(const JobSpec& spec, const JobStatus& status,
                                         const Observed& observed, const Now& now) {
  Reconciled result = Reconcile(spec, status, observed, now);
  for (auto& [id, task] : result.status.tasks) {
    if (task.phase != TaskPhase::kStopping || !task.restart_after) continue;
    task.phase = TaskPhase::kStarting;
    task.restart_after = false;
    task.incarnation = result.status.next_incarnation++;
    result.actions.push_back({Action::Kind::kStart, id, task.incarnation});
  }
  return result;
}

Reconciled GivesActionsOnce(const JobSpec& spec, const JobStatus& status, const Observed& observed,
                            const Now& now) {
  Reconciled result = Reconcile(spec, status, observed, now);
  std::erase_if(result.actions, [&](const Action& action) {
    const auto task = status.tasks.find(action.id);
    if (task == status.tasks.end() || task->second.incarnation != action.incarnation) return false;
    return task->second.phase == result.status.tasks.at(action.id).phase;
  });
  return result;
}

Reconciled TrustsTheWallClock(const JobSpec& spec, const JobStatus& status,
                              const Observed& observed, const Now& now) {
  Now changed = now;
  changed.monotonic = now.wall;
  return Reconcile(spec, status, observed, changed);
}

Reconciled LeavesParameterServers(const JobSpec& spec, const JobStatus& status,
                                  const Observed& observed, const Now& now) {
  Reconciled result = Reconcile(spec, status, observed, now);
  if (result.status.phase == JobPhase::kFinishing) result.status.phase = JobPhase::kSucceeded;
  return result;
}

Reconciled ForgetsTheJobsBudget(const JobSpec& spec, const JobStatus& status,
                                const Observed& observed, const Now& now) {
  JobStatus changed = status;
  changed.recent_restarts.clear();
  return Reconcile(spec, changed, observed, now);
}

Reconciled TakesAKilledTaskForASuccess(const JobSpec& spec, const JobStatus& status,
                                       const Observed& observed, const Now& now) {
  Observed changed = observed;
  for (TaskObservation& each : changed.tasks) {
    if (each.end.signal != 0) each.end = {.exit_code = 0};
  }
  return Reconcile(spec, status, changed, now);
}

Reconciled DecidesAgain(const JobSpec& spec, const JobStatus& status, const Observed& observed,
                        const Now& now) {
  JobStatus changed = status;
  if (changed.phase == JobPhase::kFailing) changed.phase = JobPhase::kActive;
  return Reconcile(spec, changed, observed, now);
}

Reconciled StopsTheTasksButNotTheJob(const JobSpec& spec, const JobStatus& status,
                                     const Observed& observed, const Now& now) {
  Reconciled result = Reconcile(spec, status, observed, now);
  if (!observed.cancelled.empty()) result.status.phase = status.phase;
  return result;
}

Reconciled LetsAFinishingJobFinish(const JobSpec& spec, const JobStatus& status,
                                   const Observed& observed, const Now& now) {
  Observed changed = observed;
  if (status.phase == JobPhase::kFinishing) changed.cancelled.clear();
  return Reconcile(spec, status, changed, now);
}

// As any other task.
Reconciled GivesEvaluatorsTheFinishTimeout(const JobSpec& spec, const JobStatus& status,
                                           const Observed& observed, const Now& now) {
  Observed changed = observed;
  for (TaskObservation& each : changed.tasks) {
    if (each.work) each.work->newest = EvaluatorWork::Newest::kEvaluated;
  }
  return Reconcile(spec, status, changed, now);
}

Reconciled StopsOnlyWhatRuns(const JobSpec& spec, const JobStatus& status, const Observed& observed,
                             const Now& now) {
  Reconciled result = Reconcile(spec, status, observed, now);
  for (auto& [id, task] : result.status.tasks) {
    const auto old = status.tasks.find(id);
    const bool was_starting =
        old != status.tasks.end() && old->second.phase == TaskPhase::kStarting;
    if (was_starting && task.phase == TaskPhase::kStopping) task = old->second;
  }
  return result;
}

Reconciled StartsWhatWaitsWhileSuspended(const JobSpec& spec, const JobStatus& status,
                                         const Observed& observed, const Now& now) {
  Reconciled result = Reconcile(spec, status, observed, now);
  if (result.status.phase != JobPhase::kSuspended) return result;
  for (auto& [id, task] : result.status.tasks) {
    if (task.phase != TaskPhase::kWaiting) continue;
    task.phase = TaskPhase::kStarting;
    task.incarnation = result.status.next_incarnation++;
    result.actions.push_back({Action::Kind::kStart, id, task.incarnation});
  }
  return result;
}

Reconciled CountsDisruptions(const JobSpec& spec, const JobStatus& status, const Observed& observed,
                             const Now& now) {
  Observed changed = observed;
  for (TaskObservation& each : changed.tasks) each.end.disrupted = false;
  return Reconcile(spec, status, changed, now);
}

Reconciled CountsWhatIsGivenBack(const JobSpec& spec, const JobStatus& status,
                                 const Observed& observed, const Now& now) {
  Reconciled result = Reconcile(spec, status, observed, now);
  if (result.status.gave_back == status.gave_back) return result;
  for (const TaskId id : observed.give_back->tasks) ++result.status.tasks.at(id).restarts;
  return result;
}

TEST(Simulation, EachPlantedBugIsCaught) {
  const std::vector<PlantedBug> bugs = {
      Bug("takes absence for an end", "one live", TakesAbsenceForAnEnd),
      Bug("ignores incarnations", "one live", IgnoresIncarnations),
      Bug("starts before the old one has ended", "one live", StartsBeforeTheOldOneHasEnded),
      Bug("sleeps indefinitely", "waits", SleepsIndefinitely),
      Bug("gives actions once", "ends", GivesActionsOnce),
      Bug("forgets the budget", "budget", ForgetsTheBudget),
      Bug("forgets the job's budget", "budget", ForgetsTheJobsBudget),
      Bug("takes a killed task for a success", "truth", TakesAKilledTaskForASuccess),
      Bug("trusts the wall clock", "deadline", TrustsTheWallClock),
      Bug("leaves parameter servers", "nothing left", LeavesParameterServers),
      Bug("decides again", "final", DecidesAgain),
      Bug("gives evaluators the finish timeout", "evaluator", GivesEvaluatorsTheFinishTimeout),
      Bug("starts what waits while suspended", "suspended", StartsWhatWaitsWhileSuspended),
      Bug("stops the tasks but not the job", "cancelled", StopsTheTasksButNotTheJob),
      Bug("lets a finishing job finish", "cancelled", LetsAFinishingJobFinish),
      Bug("stops only what runs", "cancelled", StopsOnlyWhatRuns),
      Bug("counts disruptions", "disrupted", CountsDisruptions),
      Bug("counts what is given back", "given back", CountsWhatIsGivenBack),
  };
  ExpectBugsAreCaught(bugs, 2000,
                      {"one live", "waits", "ends", "budget", "truth", "deadline", "nothing left",
                       "final", "suspended", "cancelled", "evaluator", "disrupted", "given back"});
}

}  // namespace
}  // namespace muster::job
