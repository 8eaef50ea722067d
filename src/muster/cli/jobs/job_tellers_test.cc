#include "muster/cli/jobs/job_tellers.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::cli {
namespace {

using formats::Json;
using ::testing::ElementsAre;

Json Failure(int incarnation, const char* task, const char* text) {
  return {{"incarnation", incarnation}, {"task", task}, {"text", text}};
}

TEST(FailureTellerTest, OneFailureIsToldOnce) {
  std::vector<std::string> said;
  FailureTeller teller([&](const std::string& text) { said.push_back(text); });
  Json job = {{"phase", "active"}, {"failures", {Failure(1, "worker-0", "exit code 3")}}};
  teller.Tell(job);
  teller.Tell(job);
  job["failures"].push_back(Failure(2, "worker-0", "exit code 3"));
  job["failures"].push_back(Failure(3, "worker-1", "exit code 3"));
  job["failures"].push_back(Failure(4, "worker-0", "exit code 4"));
  teller.Tell(job);
  job["failures"].push_back(Failure(5, "worker-1", "exit code 5"));
  job["phase"] = "failed";
  teller.Tell(job);
  EXPECT_THAT(said,
              ElementsAre("worker-0 failed: exit code 3", "worker-0 failed again, in the same way",
                          "worker-1 failed: exit code 3", "worker-0 failed: exit code 4"))
      << "what ended the job is told at its end";
}

TEST(FailureTellerTest, TheNextStartIsToldAndTheSameEndIsOneWithTheSameLastLine) {
  std::vector<std::string> said;
  FailureTeller teller([&](const std::string& text) { said.push_back(text); });
  Json job = {{"phase", "active"},
              {"tasks", {{{"task", "worker-0"}, {"pause", 4.0}}, {{"task", "worker-1"}}}},
              {"failures", {Failure(1, "worker-0", "exit code 3")}}};
  job["failures"][0]["end"] = {{"last_line", "alpha"}};
  teller.Tell(job);
  for (const char* const line : {"beta", "beta"}) {
    const auto incarnation = static_cast<int64_t>(job["failures"].size() + 1);
    job["failures"].push_back(Failure(incarnation, "worker-0", "exit code 3"));
    job["failures"].back()["end"] = {{"last_line", line}};
    teller.Tell(job);
  }
  job["failures"].push_back(Failure(9, "worker-1", "exit code 3"));
  teller.Tell(job);
  EXPECT_THAT(said, ElementsAre("worker-0 failed: exit code 3; it starts again in 4s",
                                "worker-0 failed: exit code 3; it starts again in 4s",
                                "worker-0 failed again, in the same way; it starts again in 4s",
                                "worker-1 failed: exit code 3"));
}

Json JobWithProblem(const std::string& problem) {
  const Json task = {{"task", "worker-0"}, {"problem", problem}};
  return {{"name", "j"}, {"tasks", Json::array({task})}};
}

TEST(ProblemTellerTest, ProblemsThatComeInTurnsAreToldOnce) {
  std::vector<std::string> said;
  ProblemTeller teller([&](const std::string& text) { said.push_back(text); });
  for (const char* const problem : {"ErrImagePull", "ImagePullBackOff", "ErrImagePull"}) {
    teller.Tell(JobWithProblem(problem));
  }
  EXPECT_THAT(said, ElementsAre("worker-0: ErrImagePull", "worker-0: ImagePullBackOff"));
  teller.Tell(JobWithProblem(""));
  teller.Tell(JobWithProblem("ErrImagePull"));
  EXPECT_EQ(said.size(), 3U);
}

TEST(ProblemTellerTest, NotesAreToldAsTheyChange) {
  std::vector<std::string> said;
  ProblemTeller teller([&](const std::string& text) { said.push_back(text); });
  Json job = {{"name", "j"}, {"notes", {"2 run"}}};
  teller.Tell(job);
  teller.Tell(job);
  EXPECT_THAT(said, ElementsAre("note: 2 run"));
}

}  // namespace
}  // namespace muster::cli
