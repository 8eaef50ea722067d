#include "muster/cli/jobs/job_printer.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::cli {
namespace {

using formats::Json;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(JobListTest, JobsOnYarnHaveTheirApplication) {
  const Json here = {{"name", "here"}, {"phase", "running"}, {"tasks", {{{"task", "worker-0"}}}}};
  const Json there = {{"name", "there"},
                      {"phase", "failed"},
                      {"message", "why"},
                      {"application", "application_1_2"},
                      {"tasks", Json::array()}};
  EXPECT_THAT(JobList({here}, 0, 0), Not(HasSubstr("APPLICATION")));
  EXPECT_EQ(JobList({here, there}, 0, 0),
            "JOB    STATE    TASKS  AGE  TOOK  APPLICATION\n"
            "here   running  1\n"
            "there  failed                     application_1_2  why\n");
}

TEST(JobListTest, AJobHasTakenTheTimeThatItRan) {
  Json job = {{"name", "j"},          {"phase", "suspended"}, {"created", 1000.0},
              {"start_time", 1000.0}, {"took", 10.0},         {"tasks", Json::array()}};
  const std::string heading = "JOB  STATE      TASKS  AGE     TOOK\n";
  EXPECT_EQ(JobList({job}, 4600, 0), StrCat(heading, "j    suspended         1h 00m  10s\n"));
  EXPECT_EQ(JobLine(job), "job j suspended");
  job["phase"] = "failed";
  job["completion_time"] = 4600.0;
  EXPECT_EQ(JobLine(job), "job j failed in 10s");
}

TEST(JobListTest, WhatIsSaidIsCutWhereTheTerminalEnds) {
  const std::string message(100, 'm');
  const Json job = {
      {"name", "j"}, {"phase", "failed"}, {"message", message}, {"tasks", Json::array()}};
  const std::string heading = "JOB  STATE   TASKS  AGE  TOOK\n";
  EXPECT_EQ(JobList({job}, 0, 0),
            StrCat(heading, "j    failed", std::string(20, ' '), message, "\n"));
  EXPECT_EQ(JobList({job}, 0, 60),
            StrCat(heading, "j    failed", std::string(20, ' '), std::string(26, 'm'), "...\n"));
  EXPECT_EQ(JobList({job}, 0, 20),
            StrCat(heading, "j    failed", std::string(20, ' '), std::string(17, 'm'), "...\n"));
}

TEST(JobTableTest, AJobWithoutTasksHasNoTable) {
  const Json job = {{"name", "j"},
                    {"phase", "active"},
                    {"coordinator", "it is refused"},
                    {"tasks", Json::array()}};
  EXPECT_EQ(JobTable(job), "job j active (it is refused)\n");
}

TEST(JobTableTest, WhatWasWrittenDownLongAgoSaysSo) {
  Json job = {{"name", "j"}, {"phase", "active"}, {"age", 75.0}, {"tasks", Json::array()}};
  EXPECT_EQ(JobTable(job), "job j active\nwhat follows was true 1m 15s ago\n");
  job["phase"] = "failed";
  EXPECT_EQ(JobTable(job), "job j failed\n");
}

TEST(StateLinesTest, ATaskThatWaitsSaysWhenItStartsAgain) {
  Json task = {{"task", "worker-0"},
               {"incarnation", 2},
               {"phase", "waiting"},
               {"last_end", {{"text", "exit code 3"}}}};
  const auto line = [&task] {
    return StateLines({{"name", "j"}, {"phase", "active"}, {"tasks", {task}}}).at("worker-0");
  };
  EXPECT_EQ(line(), "worker-0.2 waiting: exit code 3");
  task["pause"] = 4.0;
  EXPECT_EQ(line(),
            "worker-0.2 waiting: exit code 3; it starts again at the earliest 4s after its end");
  task["stop_reason"] = "all start again because of ps-0: exit code 3";
  EXPECT_EQ(line(),
            "worker-0.2 waiting: all start again because of ps-0: exit code 3; it starts again at "
            "the earliest 4s after its end");
  task.erase("pause");
  EXPECT_EQ(line(), "worker-0.2 waiting: all start again because of ps-0: exit code 3");
}

TEST(StateLinesTest, NobodyStartsATaskOfALostJob) {
  const Json task = {{"task", "worker-0"},
                     {"incarnation", 2},
                     {"phase", "waiting"},
                     {"pause", 4.0},
                     {"last_end", {{"text", "exit code 3"}}}};
  const Json job = {
      {"name", "j"}, {"phase", "active"}, {"coordinator", "it is gone"}, {"tasks", {task}}};
  EXPECT_EQ(StateLines(job).at("worker-0"), "worker-0.2 waiting: exit code 3");
}

TEST(FailureTextTest, WhatTheMessageSaysIsNotSaidAgain) {
  Json job = {{"name", "j"},
              {"phase", "failed"},
              {"message", "worker-0: exit code 3, and its budget is spent"},
              {"failures", {{{"task", "worker-0"}, {"text", "exit code 3"}, {"seconds", 15.0}}}}};
  EXPECT_EQ(FailureText(job), "worker-0 failed 15s after the job's start\n");
  job["message"] = "it took too long";
  EXPECT_EQ(FailureText(job), "first worker-0: exit code 3, 15s after the job's start\n");
}

}  // namespace
}  // namespace muster::cli
