#include "muster/train/cluster/finished_job.h"

#include <chrono>
#include <thread>

#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

class FinishedJobTest : public TrainingTest {
 protected:
  FinishedJobTest() {
    EXPECT_TRUE(Train("m", Training()).ok());
    EXPECT_TRUE(WriteFinishedJob(*files_, "m", job_).ok());
  }
  bool Has(const FinishedJob& job) { return HasFinished(*files_, "m", job); }

  const FinishedJob job_ = {.job = "clicks", .agreement = "epochs=3; data=4 files"};
};

TEST_F(FinishedJobTest, IsIdentifiedByJobAndAgreement) {
  EXPECT_TRUE(Has(job_));
  EXPECT_TRUE(Has({.job = "clicks", .agreement = "epochs=3; data=?"})) << "a parameter server";
  EXPECT_FALSE(Has({.job = "views", .agreement = job_.agreement}));
  EXPECT_FALSE(Has({.job = "clicks", .agreement = "epochs=4; data=4 files"}));
  EXPECT_FALSE(HasFinished(*files_, "other", job_));
  EXPECT_TRUE(absl::IsNotFound(WriteFinishedJob(*files_, "other", job_)));
}

TEST_F(FinishedJobTest, IsInvalidAfterFurtherTraining) {
  TrainSpec more = Training();
  more.input.reader.epochs = 4;
  ASSERT_TRUE(Train("m", more).ok());
  EXPECT_FALSE(Has(job_));
}

TEST_F(FinishedJobTest, AnUnreadableRecordCountsAsAbsent) {
  for (const char* const text : {"", "{}", "[1]", R"({"version": 2, "job": "clicks"})"}) {
    Write("m/muster.finished", text);
    EXPECT_FALSE(Has(job_)) << text;
  }
}

TEST_F(FinishedJobTest, AWatchFindsARecordThatIsWrittenLater) {
  RemoveFinishedJob(*files_, "m");
  EXPECT_FALSE(Has(job_));
  RemoveFinishedJob(*files_, "m");  // it need not be there
  FinishedJobWatch watch(*files_, "m", job_, /*seconds_between_looks=*/0.001);
  EXPECT_FALSE(watch.Look());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(watch.Look());
  EXPECT_FALSE(watch.has_finished());
  ASSERT_TRUE(WriteFinishedJob(*files_, "m", job_).ok());
  while (!watch.Look()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  RemoveFinishedJob(*files_, "m");
  EXPECT_TRUE(watch.Look() && watch.has_finished()) << "an end is for good";
}

}  // namespace
}  // namespace muster::train
