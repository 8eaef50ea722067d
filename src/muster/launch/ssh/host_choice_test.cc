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
  EXPECT_EQ(choice.Choose(kChief, false, 0), 0);
  EXPECT_EQ(choice.Choose(kPs, false, 0), 1);
  EXPECT_EQ(choice.Choose(kWorker0, false, 0), 2);
  EXPECT_EQ(choice.Choose(kWorker1, false, 0), 0);
  EXPECT_EQ(choice.Choose(kWorker1, false, 0), 0);  // and again there
}

TEST(HostChoiceTest, ALostHostIsAvoidedForAWhile) {
  HostChoice choice(Spec(), 3);
  choice.Avoid(0, 100);
  EXPECT_EQ(choice.Choose(kChief, /*stays=*/true, 101), 0);  // others know its address
  EXPECT_EQ(choice.Choose(kWorker1, false, 101), 1);
  EXPECT_EQ(choice.Choose(kChief, false, 101), 2);  // where there are fewer
  EXPECT_EQ(choice.GetHost(kWorker1), 1);
  choice.Avoid(1, 101);
  choice.Avoid(2, 101);
  EXPECT_FALSE(choice.AnyGood(102));
  EXPECT_EQ(choice.Choose(kPs, false, 102), 1);  // there is no better one
  EXPECT_TRUE(choice.AnyGood(100 + HostChoice::kAvoidSeconds));
  EXPECT_EQ(choice.Choose(kPs, false, 100 + HostChoice::kAvoidSeconds), 0);
}

}  // namespace
}  // namespace muster::launch::ssh
