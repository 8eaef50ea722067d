#include "muster/cli/jobs/status_watcher.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/control/memory_place.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;

// A place that does not answer for a while.
class RestingPlace : public control::MemoryPlace {
 public:
  explicit RestingPlace(control::MemoryJob* job) : MemoryPlace(job), job_(job) {}

  absl::StatusOr<formats::Json> Describe() override {
    job_->silent = ++asked_ == 2 || asked_ == 3;
    if (asked_ == 4) job_->End("succeeded");
    return MemoryPlace::Describe();
  }
  bool WaitForEnd(double /*seconds*/) override { return !job_->runs; }
  int asked() const { return asked_; }

 private:
  control::MemoryJob* const job_;
  int asked_ = 0;
};

TEST(WatchStatusTest, APlaceThatDoesNotAnswerIsAskedAgain) {
  control::MemoryJob job;
  job.AddTask({job::TaskType::kChief, 0});
  RestingPlace place(&job);
  ::testing::internal::CaptureStdout();
  const absl::Status status = WatchStatus(place);
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(place.asked(), 4);
  EXPECT_THAT(text, HasSubstr("chief-0"));
  EXPECT_THAT(text, HasSubstr("succeeded"));
}

TEST(WatchStatusTest, APlaceThatHasEndedWithoutAnAnswerIsAnError) {
  control::MemoryJob job;
  job.runs = false;
  job.silent = true;
  control::MemoryPlace place(&job);
  EXPECT_TRUE(absl::IsUnavailable(WatchStatus(place)));
}

}  // namespace
}  // namespace muster::cli
