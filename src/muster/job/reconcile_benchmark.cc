// One pass of Reconcile over a job of many replicas; its result is let go within the time.
#include <string>
#include <utility>

#include "benchmark/benchmark.h"
#include "muster/job/pod_template.h"
#include "muster/job/reconcile.h"

namespace muster::job {
namespace {

using Phase = TaskObservation::Phase;

// A chief, 10 parameter servers, and workers.
JobSpec GetSpec(int replicas) {
  JobSpec spec;
  spec.name = "measured";
  const auto add = [&](TaskType type, int count) {
    spec.replicas[type] = {count, RestartPolicy::kOnFailure, TemplateFor({"python", "train.py"})};
  };
  add(TaskType::kChief, 1);
  add(TaskType::kPs, 10);
  add(TaskType::kWorker, replicas - 11);
  spec.progress_timeout_seconds = 600;
  spec.finish_timeout_seconds = 60;
  return spec;
}

Now At(double seconds) {
  return {.wall = 1e9 + seconds, .monotonic = 100 + seconds, .clock_id = "boot"};
}

Observed AllAre(const JobStatus& status, Phase phase) {
  Observed observed;
  for (const auto& [id, task] : status.tasks) {
    observed.tasks.push_back({.id = id, .incarnation = task.incarnation, .phase = phase});
  }
  return observed;
}

JobStatus Running(const JobSpec& spec) {
  const JobStatus started = Reconcile(spec, {}, {}, At(0)).status;
  return Reconcile(spec, started, AllAre(started, Phase::kRunning), At(1)).status;
}

void Measure(benchmark::State& state, const JobSpec& spec, const JobStatus& status,
             const Observed& observed) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(Reconcile(spec, status, observed, At(2)));
  }
}

// The first pass, which gives every Start.
void FirstPass(benchmark::State& state) {
  Measure(state, GetSpec(static_cast<int>(state.range(0))), {}, {});
}

// None has been seen running yet: every Start is given again.
void AllStarting(benchmark::State& state) {
  const JobSpec spec = GetSpec(static_cast<int>(state.range(0)));
  const JobStatus status = Reconcile(spec, {}, {}, At(0)).status;
  Measure(state, spec, status, AllAre(status, Phase::kStarting));
}

// What a pass usually finds.
void AllRunning(benchmark::State& state) {
  const JobSpec spec = GetSpec(static_cast<int>(state.range(0)));
  const JobStatus status = Running(spec);
  Measure(state, spec, status, AllAre(status, Phase::kRunning));
}

// A worker failed, and all are stopped to be started again.
void GangRestart(benchmark::State& state) {
  JobSpec spec = GetSpec(static_cast<int>(state.range(0)));
  spec.restart_scope = RestartScope::kGang;
  const JobStatus status = Running(spec);
  Observed observed = AllAre(status, Phase::kRunning);
  observed.tasks.back().phase = Phase::kEnded;
  observed.tasks.back().end = {.exit_code = 1};
  Measure(state, spec, status, observed);
}

// All ended at once, and badly: each has its failure recorded and its restart decided.
void AllFailed(benchmark::State& state) {
  JobSpec spec = GetSpec(static_cast<int>(state.range(0)));
  spec.restart_budget.per_job = spec.total();
  const JobStatus status = Running(spec);
  Observed observed = AllAre(status, Phase::kEnded);
  for (TaskObservation& each : observed.tasks) each.end = {.exit_code = 1};
  Measure(state, spec, status, observed);
}

BENCHMARK(FirstPass)->Arg(1000);
BENCHMARK(AllStarting)->Arg(1000);
BENCHMARK(AllRunning)->Arg(1000);
BENCHMARK(GangRestart)->Arg(1000);
BENCHMARK(AllFailed)->Arg(1000);

}  // namespace
}  // namespace muster::job
