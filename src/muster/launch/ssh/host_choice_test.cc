#include "muster/launch/ssh/host_choice.h"

#include "gtest/gtest.h"
#include "muster/job/pod_template.h"

namespace muster::launch::ssh {
namespace {

using job::TaskId;
using job::TaskType;

constexpr TaskId kChief{TaskType::kChief, 0}, kWorker0{TaskType::kWorker, 0},
    kWorker1{TaskType::kWorker, 1}, kPs{TaskType::kPs, 0};

job::JobSpec Spec() {
  job::JobSpec spec;
  spec.replicas[TaskType::kChief] = {1, job::RestartPolicy::kOnFailure, {}};
  spec.replicas[TaskType::kPs] = {1, job::RestartPolicy::kOnFailure, {}};
  spec.replicas[TaskType::kWorker] = {2, job::RestartPolicy::kOnFailure, {}};
  return spec;
}

TEST(HostChoiceTest, RolesAreSpreadInTurn) {
  HostChoice choice(Spec(), 3);
  EXPECT_EQ(choice.Choose(kChief, false, 0).host, 0);
  EXPECT_EQ(choice.Choose(kPs, false, 0).host, 1);
  EXPECT_EQ(choice.Choose(kWorker0, false, 0).host, 2);
  EXPECT_EQ(choice.Choose(kWorker1, false, 0).host, 0);
  EXPECT_EQ(choice.Choose(kWorker1, false, 0).host, 0);  // and again there
}

TEST(HostChoiceTest, ALostHostIsAvoidedForAWhile) {
  HostChoice choice(Spec(), 3);
  choice.Avoid(0, 100);
  EXPECT_EQ(choice.Choose(kChief, /*stays=*/true, 101).host, 0);  // others know its address
  EXPECT_EQ(choice.Choose(kWorker1, false, 101).host, 1);
  EXPECT_EQ(choice.Choose(kChief, false, 101).host, 2);  // where there are fewer
  EXPECT_EQ(choice.GetPlace(kWorker1).host, 1);
  choice.Avoid(1, 101);
  choice.Avoid(2, 101);
  EXPECT_FALSE(choice.AnyGood(102));
  EXPECT_EQ(choice.Choose(kPs, false, 102).host, 1);  // there is no better one
  EXPECT_TRUE(choice.AnyGood(100 + HostChoice::kAvoidSeconds));
  EXPECT_EQ(choice.Choose(kPs, false, 100 + HostChoice::kAvoidSeconds).host, 0);
}

// A chief and three workers with a GPU each on two hosts: 0 has the chief and worker 1, 1 the
// others.
TEST(HostChoiceTest, ATaskThatHasMovedGetsAGpuThatNoOtherTaskHas) {
  job::JobSpec spec;
  job::Json pod = job::TemplateFor({"program"});
  pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = 1;
  spec.replicas[TaskType::kChief] = {1, job::RestartPolicy::kOnFailure, pod};
  spec.replicas[TaskType::kWorker] = {3, job::RestartPolicy::kOnFailure, pod};
  constexpr TaskId kWorker2{TaskType::kWorker, 2};
  HostChoice choice(spec, 2);
  EXPECT_EQ(choice.Choose(kChief, false, 0), (TaskPlace{.host = 0, .first_gpu = 0}));
  EXPECT_EQ(choice.Choose(kWorker0, false, 0), (TaskPlace{.host = 1, .first_gpu = 0}));
  EXPECT_EQ(choice.Choose(kWorker1, false, 0), (TaskPlace{.host = 0, .first_gpu = 1}));
  EXPECT_EQ(choice.Choose(kWorker2, false, 0), (TaskPlace{.host = 1, .first_gpu = 1}));
  choice.Avoid(1, 1);
  EXPECT_EQ(choice.Choose(kWorker0, false, 2), (TaskPlace{.host = 0, .first_gpu = 2}));
  // Those that stayed keep theirs, and a hole is filled.
  EXPECT_EQ(choice.Choose(kWorker1, false, 2), (TaskPlace{.host = 0, .first_gpu = 1}));
  const double later = 2 + HostChoice::kAvoidSeconds;
  choice.Avoid(0, later);
  EXPECT_EQ(choice.Choose(kWorker1, false, later), (TaskPlace{.host = 1, .first_gpu = 0}));
  EXPECT_EQ(choice.Choose(kWorker2, false, later), (TaskPlace{.host = 1, .first_gpu = 1}));
}

}  // namespace
}  // namespace muster::launch::ssh
