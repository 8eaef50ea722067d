#include "muster/train/run_training.h"

#include "muster/train/cluster/finished_job.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RunTrainingTest : public TrainingTest {
 protected:
  TrainingRequest Request() {
    TrainingRequest request = {.model = *model::ParseModelSpec(*files_, kTestSpec, "spec.yaml"),
                               .run = Config("model"),
                               .train = Training()};
    request.run.seed = 5;
    request.role.context.stop = &never_;
    request.role.context.note = [this](const std::string& text) { notes_ += text + "\n"; };
    return request;
  }
  absl::StatusOr<TrainingOutcome> Run(TrainingRequest request) {
    return RunTraining(std::move(request), *files_, clock_,
                       [this](Progress&, const EvalResult& result, const auto&) {
                         evaluated_.push_back(result.step);
                       });
  }

  std::string notes_;
  std::vector<int64_t> evaluated_;
};

TEST_F(RunTrainingTest, AProcessWithoutAClusterTrainsAlone) {
  const auto outcome = Run(Request());
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_TRUE(outcome->reports);
  EXPECT_EQ(outcome->result.training.step, 57);
  EXPECT_FALSE(outcome->result.evaluation.has_value());
  ASSERT_TRUE(Train("alone", Training()).ok());
  EXPECT_TRUE(Weights("model") == Weights("alone"));
}

TEST_F(RunTrainingTest, EvaluatesIfRequested) {
  TrainingRequest request = Request();
  request.eval = Evaluation();
  request.eval->start_delay_secs = request.eval->throttle_secs = 0;
  const auto outcome = Run(std::move(request));
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_THAT(evaluated_, ElementsAre(57));
  EXPECT_EQ(outcome->result.evaluation->step, 57);
}

TEST_F(RunTrainingTest, WarmStartsFromAnotherModel) {
  ASSERT_TRUE(Train("other", Training()).ok());
  TrainingRequest request = Request();
  request.warm_start = "other";
  request.train.max_steps = 1;
  ASSERT_TRUE(Run(request).ok());
  request.run.model_dir = "cold";
  request.warm_start = "";
  ASSERT_TRUE(Run(std::move(request)).ok());
  EXPECT_FALSE(Weights("model") == Weights("cold"));
}

// The tasks of an ended job that a launcher starts again.
TEST_F(RunTrainingTest, AJobThatHasEndedIsNotRunAgain) {
  TrainingRequest request = Request();
  request.run.job = "clicks";
  request.role.context.agreement = "epochs=3";
  ASSERT_TRUE(Run(request).ok());
  request.run.task_type = "evaluator";
  request.run.is_chief = false;
  const FinishedJob end = {.job = "clicks", .agreement = "epochs=3; early stop=?"};
  ASSERT_TRUE(WriteFinishedJob(*files_, "model", end).ok());
  const auto outcome = Run(request);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_FALSE(outcome->reports);
  EXPECT_THAT(notes_, HasSubstr("job 'clicks' has ended before"));
  // A job with other settings is another job, which fails: it has an evaluator without --evaluator.
  request.role.context.agreement = "epochs=4";
  EXPECT_TRUE(absl::IsFailedPrecondition(Run(request).status()));
}

TEST_F(RunTrainingTest, ContradictorySettingsAreRefused) {
  TrainingRequest request = Request();
  request.role.strategy = StrategyKind::kPsSync;
  EXPECT_THAT(ToStd(Run(request).status().message()), HasSubstr("--strategy ps-sync needs"));
  request.role.strategy.reset();
  request.warm_start = "nowhere";
  EXPECT_TRUE(absl::IsNotFound(Run(request).status()));
}

}  // namespace
}  // namespace muster::train
