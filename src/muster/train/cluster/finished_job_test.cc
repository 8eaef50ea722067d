#include "muster/train/cluster/finished_job.h"

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

}  // namespace
}  // namespace muster::train
