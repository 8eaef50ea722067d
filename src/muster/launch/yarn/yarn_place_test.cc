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

TEST(YarnPlaceTest, ContainersThatAreNotThereAreTold) {
  Application app = {.queue = "root.q"};
  EXPECT_EQ(DescribeWanted(app), "");
  app.wanted = {{.count = 2, .memory_mb = 6144, .cores = 1},
                {.count = 1, .memory_mb = 512, .cores = 2}};
  EXPECT_EQ(DescribeWanted(app),
            "waits for 2 containers of 6144 MB and 1 core and 1 container of 512 MB and 2 cores, "
            "for which YARN has no room in queue root.q: all tasks must have theirs before the "
            "first one starts");
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
