#include "gtest/gtest.h"
#include "muster/control/coordinator.h"

namespace muster::control {
namespace {

// What the only task of a job says of the pause before its next start; null: nothing.
Json GetPause(job::JobPhase job_phase, job::TaskPhase phase, double seconds = 4) {
  job::JobSpec spec;
  spec.name = "j";
  job::JobStatus status;
  status.phase = job_phase;
  job::TaskStatus& task = status.tasks[{job::TaskType::kWorker, 0}];
  task.phase = phase;
  task.last_end = job::TaskEnd{.exit_code = 3, .at = 100};
  task.not_before = task.last_end->at + seconds;
  const Json described = DescribeJob(spec, status, Json::object());
  return described["tasks"][0].value("pause", Json());
}

TEST(DescribeTest, ATaskThatWillStartAgainHasItsPause) {
  EXPECT_EQ(GetPause(job::JobPhase::kActive, job::TaskPhase::kWaiting), 4.0);
  EXPECT_EQ(GetPause(job::JobPhase::kFinishing, job::TaskPhase::kWaiting), 4.0);
  EXPECT_EQ(GetPause(job::JobPhase::kActive, job::TaskPhase::kRunning), nullptr);
  EXPECT_EQ(GetPause(job::JobPhase::kSuspended, job::TaskPhase::kWaiting), nullptr);
  EXPECT_EQ(GetPause(job::JobPhase::kFailed, job::TaskPhase::kWaiting), nullptr);
  EXPECT_EQ(GetPause(job::JobPhase::kActive, job::TaskPhase::kWaiting, 0.25), nullptr)
      << "nobody would notice it";
}

}  // namespace
}  // namespace muster::control
