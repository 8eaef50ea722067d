// JobSpec::fail_fast: what ends as it did before, before any progress, is not started a third time.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/job/reconcile_test_support.h"

namespace muster::job {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr TaskId kWorker2{TaskType::kWorker, 2};

TaskEnd Typo() { return {.exit_code = 1, .last_line = "NameError: name 'x' is not defined"}; }

JobSpec SpecFor(RestartScope scope) {
  JobSpec spec = GetSpec({{TaskType::kWorker, 3}, {TaskType::kPs, 1}});
  spec.all_workers = spec.fail_fast = true;
  spec.restart_scope = scope;
  spec.restart_budget.per_task = 5;
  spec.finish_timeout_seconds = 60;
  return spec;
}

// Ends `task` and lets all that is due start again.
void EndAndContinue(Bench* bench, TaskId task, const TaskEnd& end, double seconds = 20) {
  bench->End(task, end);
  for (int i = 0; i < 3; ++i) bench->Obey(seconds / 3);
}

TEST(ReconcileRepeat, TheSameEndTwiceInARowFailsTheJobAndSaysSo) {
  Bench bench(SpecFor(RestartScope::kTask));
  bench.Obey();
  EndAndContinue(&bench, kWorker1, Typo());
  EXPECT_EQ(bench.job(), JobPhase::kActive);
  Bench by_manifest = bench;
  by_manifest.spec.fail_fast = false;
  bench.End(kWorker1, Typo());
  EXPECT_THAT(bench.FailedMessage(),
              AllOf(HasSubstr("worker-1: exit code 1, as the time before, with 'NameError: name"),
                    HasSubstr("not started a third time")));
  by_manifest.End(kWorker1, Typo());
  EXPECT_EQ(by_manifest.job(), JobPhase::kActive);
}

TEST(ReconcileRepeat, NumbersInTheLastLineMayDiffer) {
  const auto disk_full = [](const char* file, const char* step) {
    return TaskEnd{.exit_code = 1,
                   .last_line = StrCat("muster: cannot write '", file, "' of step ", step,
                                       ": No space left on device")};
  };
  Bench bench(SpecFor(RestartScope::kTask));
  bench.Obey();
  EndAndContinue(&bench, kWorker1, disk_full("m/model.ckpt-150.tmp-7f3a", "150"));
  EXPECT_EQ(bench.job(), JobPhase::kActive);
  bench.End(kWorker1, disk_full("m/model.ckpt-160.tmp-90bc2", "160"));
  EXPECT_THAT(bench.FailedMessage(), HasSubstr("not started a third time"));
}

TEST(ReconcileRepeat, AnotherEndIsNone) {
  const TaskEnd others[] = {{.exit_code = 2, .last_line = Typo().last_line},
                            {.exit_code = 1, .last_line = "OSError: no route to host"},
                            {.exit_code = 143, .last_line = Typo().last_line},
                            {.signal = 9, .last_line = Typo().last_line},
                            {.lost = true}};
  for (const TaskEnd& other : others) {
    SCOPED_TRACE(other.Describe());
    Bench bench(SpecFor(RestartScope::kTask));
    bench.Obey();
    EndAndContinue(&bench, kWorker1, Typo());
    EndAndContinue(&bench, kWorker1, other);
    EXPECT_EQ(bench.job(), JobPhase::kActive);
    if (other.exit_code == 1 || other.exit_code == 2) continue;
    EndAndContinue(&bench, kWorker1, Typo());  // what was before the disruption is forgotten
    EXPECT_EQ(bench.job(), JobPhase::kActive);
  }
}

TEST(ReconcileRepeat, WhatFollowsADisruptionIsNoneOfTheirOwn) {
  const TaskEnd refused{.exit_code = 1, .last_line = "ConnectionRefusedError"};
  Bench bench(SpecFor(RestartScope::kTask));
  bench.Obey();
  EndAndContinue(&bench, kWorker0, {.signal = 9}, 3);
  for (int i = 0; i < 3; ++i) EndAndContinue(&bench, kWorker1, refused, 12);
  EXPECT_EQ(bench.job(), JobPhase::kActive);
}

TEST(ReconcileRepeat, AProgramThatIsNotThereIsNotLookedForAThirdTime) {
  const TaskEnd missing{.exit_code = kNoProgramCode, .detail = "cannot start: start train.py"};
  Bench bench(SpecFor(RestartScope::kTask));
  bench.Obey();
  EndAndContinue(&bench, kWorker1, missing);
  EXPECT_EQ(bench.job(), JobPhase::kActive);
  bench.End(kWorker1, missing);
  EXPECT_THAT(bench.FailedMessage(),
              AllOf(HasSubstr("worker-1: cannot start: start train.py; exit code 127, as the time"),
                    HasSubstr("not started a third time")));
}

TEST(ReconcileRepeat, ProgressEndsTheWatch) {
  Bench bench(SpecFor(RestartScope::kTask));
  bench.Obey();
  EndAndContinue(&bench, kWorker1, Typo());
  bench.See(kWorker0, TaskObservation::Phase::kRunning, {});
  bench.seen.tasks.back().progressed = true;
  bench.Pass(1);
  for (int i = 0; i < 2; ++i) EndAndContinue(&bench, kWorker1, Typo());
  EXPECT_EQ(bench.job(), JobPhase::kActive);
}

TEST(ReconcileRepeat, TwoTasksThatEndAlikeAreNotOne) {
  Bench bench(SpecFor(RestartScope::kTask));
  bench.Obey();
  EndAndContinue(&bench, kWorker1, Typo());
  EndAndContinue(&bench, kWorker0, Typo());
  EXPECT_EQ(bench.job(), JobPhase::kActive);
}

TEST(ReconcileRepeat, AGangEndsByItsFirstFailure) {
  Bench bench(SpecFor(RestartScope::kGang));
  bench.Obey();
  EndAndContinue(&bench, kWorker1, Typo());
  EXPECT_EQ(bench.job(), JobPhase::kActive);
  bench.End(kWorker2, Typo());
  EXPECT_THAT(bench.FailedMessage(), HasSubstr("worker-2: exit code 1, as the time before"));
}

TEST(ReconcileRepeat, WithoutAModelFolderALongRunMayHaveTrained) {
  for (const bool known : {false, true}) {
    JobSpec spec = SpecFor(RestartScope::kTask);
    if (known) spec.model_dir = "/m";
    Bench bench(spec);
    bench.Obey();
    EndAndContinue(&bench, kWorker1, Typo());
    bench.Pass(700);
    bench.End(kWorker1, Typo());
    EXPECT_EQ(bench.job() == JobPhase::kActive, !known);
  }
}

}  // namespace
}  // namespace muster::job
