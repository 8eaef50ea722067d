// Tests that every JobPlace must pass. An implementation's test contains
//   INSTANTIATE_TEST_SUITE_P(Mine, JobPlaceConformance, testing::Values(JobPlaceMember{...}),
//                            JobPlaceMemberName);
// To be included in one source file of a test program.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "muster/control/job_place.h"

namespace muster::control {

// A job named "j" with the tasks worker-0 and worker-1, which runs, and what the tests do to it.
// One owner thread.
class JobUnderTest {
 public:
  virtual ~JobUnderTest() = default;
  virtual std::unique_ptr<JobPlace> Open() = 0;
  virtual void Write(job::TaskId task, const std::string& bytes) = 0;
  // Makes its tasks succeed, after which nothing runs the job any more.
  virtual void Succeed() = 0;
  // Carries out everything that was ordered.
  virtual void Settle() = 0;
  // `silent`: the process that answers for the job stops answering, until it is set to false.
  virtual void SetSilent(bool silent) = 0;
  // Ends the process that answers for the job; another one answers at another address.
  virtual void Move() = 0;
  // Ends everything that runs the job, without any message. Returns false if this cannot happen in
  // this kind of place.
  virtual bool Lose() = 0;
};

struct JobPlaceMember {
  std::string name;
  std::function<std::unique_ptr<JobUnderTest>()> make;
};

inline std::string JobPlaceMemberName(const testing::TestParamInfo<JobPlaceMember>& member) {
  return member.param.name;
}

class JobPlaceConformance : public testing::TestWithParam<JobPlaceMember> {
 protected:
  static constexpr job::TaskId kWorker{job::TaskType::kWorker, 0};
  static constexpr double kLongSeconds = 60;  // never reached

  void SetUp() override {
    job_ = GetParam().make();
    place_ = job_->Open();
  }
  formats::Json Describe() {
    const auto job = place_->Describe();
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? *job : formats::Json::object();
  }
  std::string Phase() { return Describe().value("phase", ""); }
  // A read that is UNAVAILABLE may be repeated, as of a log whose server has just moved.
  std::string ReadLog(LogSource& log) {
    constexpr int kMostRepeats = 20;
    constexpr double kWaitSeconds = 0.1;
    std::string all;
    for (int repeats = 0;;) {
      const auto piece = log.Read(offset_, 1000, repeats == 0 ? 0 : kWaitSeconds);
      if (absl::IsUnavailable(piece.status()) && ++repeats < kMostRepeats) continue;
      EXPECT_TRUE(piece.ok()) << piece.status();
      if (!piece.ok() || piece->bytes.empty()) return all;
      all += piece->bytes;
      offset_ = piece->next;
    }
  }

  std::unique_ptr<JobUnderTest> job_;
  std::unique_ptr<JobPlace> place_;
  int64_t offset_ = 0;
};

TEST_P(JobPlaceConformance, DescribesTheJobAndItsTasks) {
  const formats::Json job = Describe();
  EXPECT_EQ(job.value("name", ""), "j");
  EXPECT_EQ(job.value("phase", ""), "active");
  ASSERT_TRUE(job.contains("tasks"));
  ASSERT_EQ(job["tasks"].size(), 2U);
  EXPECT_EQ(job["tasks"][0].value("task", ""), "worker-0");
  EXPECT_FALSE(job.contains("lost"));
  EXPECT_FALSE(place_->WaitForEnd(0));
}

TEST_P(JobPlaceConformance, AJobThatHasEndedIsDescribedAndNothingRunsIt) {
  job_->Succeed();
  EXPECT_EQ(Phase(), "succeeded");
  EXPECT_TRUE(place_->WaitForEnd(kLongSeconds));
  EXPECT_FALSE(Describe().contains("coordinator"));
}

TEST_P(JobPlaceConformance, AStopEndsTheJobAndItsReasonIsShown) {
  ASSERT_TRUE(place_->Stop("enough").ok());
  job_->Settle();
  const formats::Json job = Describe();
  EXPECT_EQ(job.value("phase", ""), "failed");
  EXPECT_THAT(job.value("message", ""), testing::HasSubstr("enough"));
}

TEST_P(JobPlaceConformance, AStopMayBeRepeated) {
  ASSERT_TRUE(place_->Stop("enough").ok());
  EXPECT_TRUE(place_->Stop("enough").ok());
  job_->Settle();
  EXPECT_TRUE(place_->Stop("enough").ok());
  EXPECT_EQ(Phase(), "failed");
}

TEST_P(JobPlaceConformance, AStopAfterTheEndChangesNothing) {
  job_->Succeed();
  EXPECT_TRUE(place_->Stop("too late").ok());
  EXPECT_EQ(Phase(), "succeeded");
}

TEST_P(JobPlaceConformance, IsSuspendedAndResumed) {
  ASSERT_TRUE(place_->Suspend(true).ok());
  ASSERT_TRUE(place_->Suspend(true).ok());
  job_->Settle();
  EXPECT_EQ(Phase(), "suspended");
  EXPECT_FALSE(place_->WaitForEnd(0));
  ASSERT_TRUE(place_->Suspend(false).ok());
  job_->Settle();
  EXPECT_NE(Phase(), "suspended");
  job_->Succeed();
  EXPECT_TRUE(absl::IsFailedPrecondition(place_->Suspend(true)));
}

TEST_P(JobPlaceConformance, OnlyAJobThatIsSuspendedOrThatNothingRunsIsResumed) {
  EXPECT_TRUE(absl::IsFailedPrecondition(place_->Resume()));
  ASSERT_TRUE(place_->Suspend(true).ok());
  job_->Settle();
  EXPECT_TRUE(place_->Resume().ok());
  job_->Settle();
  EXPECT_EQ(Phase(), "active");
  job_->Succeed();
  EXPECT_TRUE(absl::IsFailedPrecondition(place_->Resume()));
}

TEST_P(JobPlaceConformance, AJobThatNothingRunsIsResumed) {
  if (!job_->Lose()) return;
  ASSERT_TRUE(Describe().value("lost", false));
  const absl::Status resumed = place_->Resume();
  ASSERT_TRUE(resumed.ok()) << resumed;
  EXPECT_FALSE(place_->WaitForEnd(0));
  EXPECT_FALSE(Describe().contains("lost"));
}

TEST_P(JobPlaceConformance, AJobIsRemovedOnceNothingRunsIt) {
  EXPECT_TRUE(absl::IsFailedPrecondition(place_->Remove(/*with_work=*/true).status()));
  EXPECT_EQ(Phase(), "active");
  job_->Succeed();
  const auto kept = place_->Remove(/*with_work=*/false);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(*kept, "");
  EXPECT_FALSE(place_->Describe().ok());
}

TEST_P(JobPlaceConformance, AJobThatWasLostIsRemoved) {
  if (!job_->Lose()) return;
  const auto kept = place_->Remove(/*with_work=*/false);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_FALSE(place_->Describe().ok());
}

TEST_P(JobPlaceConformance, LogsAreReadWhileTheJobRunsAndAfterItHasEnded) {
  const auto log = place_->OpenLog(kWorker);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ(ReadLog(**log), "");
  job_->Write({job::TaskType::kWorker, 1}, "of another one");
  job_->Write(kWorker, "one\n");
  EXPECT_EQ(ReadLog(**log), "one\n");
  job_->Write(kWorker, "two\n");
  job_->Succeed();
  EXPECT_EQ(ReadLog(**log), "two\n");
  offset_ = 0;
  EXPECT_EQ(ReadLog(**place_->OpenLog(kWorker)), "one\ntwo\n");
}

TEST_P(JobPlaceConformance, ATaskThatTheJobDoesNotHaveHasNoLog) {
  for (const job::TaskId task :
       {job::TaskId{job::TaskType::kWorker, 2}, job::TaskId{job::TaskType::kChief, 0},
        job::TaskId{job::TaskType::kWorker, -1}}) {
    EXPECT_TRUE(absl::IsNotFound(place_->OpenLog(task).status())) << job::TaskName(task);
  }
}

TEST_P(JobPlaceConformance, SilenceIsToldAndNothingIsTakenForDone) {
  job_->SetSilent(true);
  const auto job = place_->Describe();
  EXPECT_TRUE(job.ok() ? job->contains("coordinator") : absl::IsUnavailable(job.status()))
      << job.status();
  EXPECT_TRUE(absl::IsUnavailable(place_->Stop("enough")));
  EXPECT_TRUE(absl::IsUnavailable(place_->Suspend(true)));
  EXPECT_FALSE(place_->WaitForEnd(0));
  job_->SetSilent(false);
  EXPECT_EQ(Phase(), "active");
  ASSERT_TRUE(place_->Stop("enough").ok());
  job_->Settle();
  EXPECT_EQ(Phase(), "failed");
}

TEST_P(JobPlaceConformance, AnotherThatAnswersElsewhereIsFound) {
  EXPECT_EQ(Phase(), "active");
  const auto log = place_->OpenLog(kWorker);
  job_->Write(kWorker, "one ");
  EXPECT_EQ(ReadLog(**log), "one ");
  job_->Move();
  job_->Write(kWorker, "two");
  EXPECT_EQ(ReadLog(**log), "two");
  EXPECT_EQ(Phase(), "active");
  EXPECT_FALSE(Describe().contains("coordinator"));
  ASSERT_TRUE(place_->Stop("enough").ok());
  job_->Settle();
  EXPECT_EQ(Phase(), "failed");
}

TEST_P(JobPlaceConformance, AJobThatNothingRunsIsSaidToBeLostAndIsClosed) {
  if (!job_->Lose()) return;
  const formats::Json job = Describe();
  EXPECT_TRUE(job.value("lost", false));
  EXPECT_THAT(job.value("coordinator", ""), testing::HasSubstr("muster stop j"));
  EXPECT_TRUE(place_->WaitForEnd(kLongSeconds));
  EXPECT_TRUE(absl::IsFailedPrecondition(place_->Suspend(true)));
  ASSERT_TRUE(place_->Stop("enough").ok());
  EXPECT_EQ(Phase(), "failed");
  EXPECT_NE(Describe().value("message", ""), "");  // the stop, or the loss of a task
}

}  // namespace muster::control
