#include "muster/launch/yarn/yarn_place.h"

#include <gtest/gtest.h>

namespace muster::launch::yarn {
namespace {

TEST(YarnPlaceTest, WaitingIsToldInFewWords) {
  Application app = {.queue = "root.q"};
  EXPECT_EQ(DescribeWaiting(app), "it waits in YARN's queue root.q");
  app.diagnostics =
      "[Fri Nov 27 01:28:22 +0000 2026] Application is Activated, waiting for resources to be "
      "assigned for AM.  Details : AM Partition = <DEFAULT_PARTITION> ; Queue's used capacity = 0";
  EXPECT_EQ(DescribeWaiting(app),
            "it waits in YARN's queue root.q: Application is Activated, waiting for resources to "
            "be assigned for AM.");
  app.diagnostics =
      "[Fri Nov 27 01:28:22 +0000 2026] Scheduler has assigned a container for AM, waiting for AM "
      "container to be launched";
  const std::string starts = DescribeWaiting(app);
  EXPECT_EQ(starts, "YARN starts its ApplicationMaster");
  app.diagnostics = "AM container is launched, waiting for AM container to Register with RM";
  EXPECT_EQ(DescribeWaiting(app), starts) << "which is told once";
}

TEST(YarnPlaceTest, TheMessageOfAFailedApplicationIsItsMasters) {
  const Application app = {.id = "application_1_2",
                           .state = "FINISHED",
                           .final_status = "FAILED",
                           .diagnostics = "failed worker-0: exit code 3"};
  EXPECT_EQ(Describe(app)["message"], "worker-0: exit code 3");
  EXPECT_EQ(Describe(app)["application"], "application_1_2");
}

}  // namespace
}  // namespace muster::launch::yarn
