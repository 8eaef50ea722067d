#include "muster/train/run_training.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "muster/io/local_file_system.h"
#include "muster/train/cluster/finished_job.h"
#include "muster/train/cluster/tf_config.h"
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
  request.role.rendezvous_seconds = 0.1;
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

// The evaluator was killed before it had evaluated the last checkpoint.
TEST_F(RunTrainingTest, TheEvaluatorOfAnEndedJobEvaluatesTheLastCheckpoint) {
  ASSERT_TRUE(Train("model", Training()).ok());
  const FinishedJob end = {.job = "clicks", .agreement = "epochs=3; early stop=?"};
  ASSERT_TRUE(WriteFinishedJob(*files_, "model", end).ok());
  TrainingRequest request = Request();
  request.run.job = "clicks";
  request.run.task_type = "evaluator";
  request.run.is_chief = false;
  request.eval = Evaluation();
  request.role.context.agreement = "epochs=3";
  request.role.rendezvous_seconds = 0.1;
  ASSERT_TRUE(Run(request).ok());
  EXPECT_THAT(evaluated_, ElementsAre(57));
  EXPECT_THAT(notes_, HasSubstr("it is evaluated now"));
  ASSERT_TRUE(Run(request).ok());
  EXPECT_THAT(evaluated_, ElementsAre(57)) << "evaluated again";
  EXPECT_THAT(notes_, HasSubstr("nothing is left to do"));
  // A chief that trains on removes the record; the evaluator then joins it, and fails here since
  // it has none.
  request.role.rendezvous_seconds = 0;
  const std::jthread chief([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    RemoveFinishedJob(*files_, "model");
  });
  EXPECT_TRUE(absl::IsFailedPrecondition(Run(request).status()));
}

// Of a task that is alone, since the others have ended the job while it was away.
class MissedEndTest : public RunTrainingTest {
 protected:
  void SetUp() override {
    const std::string key = testing::TempDir() + "/muster_missed_end_key";
    const auto local = io::NewLocalFileSystem();
    ASSERT_TRUE(io::WriteFileAtomically(*local, key, std::string(64, 'a')).ok());
    ASSERT_EQ(chmod(key.c_str(), 0600), 0);
    setenv("MUSTER_KEY_FILE", key.c_str(), 1);
    ASSERT_TRUE(Train("model", Training()).ok());
  }
  void TearDown() override { unsetenv("MUSTER_KEY_FILE"); }

  // `others`: the cluster's other tasks, at whose addresses nobody listens.
  TrainingRequest MakeTask(const std::string& type, const std::string& others) {
    TrainingRequest request = Request();
    request.run.job = "clicks";
    request.role.context.agreement = "epochs=3";
    const std::string own = StrCat("127.0.0.1:", 20'000 + getpid() % 10'000);
    EXPECT_TRUE(ApplyTfConfig(StrCat(R"({"cluster": {)", others, R"(, ")", type, R"(": [")", own,
                                     R"("]}, "task": {"type": ")", type, R"(", "index": 0}})"),
                              &request.run)
                    .ok());
    return request;
  }
  // The chief records the end while the task waits without a limit.
  void ExpectEnd(TrainingRequest request) {
    request.role.rendezvous_seconds = 0;
    const std::jthread chief([&] {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      const FinishedJob end = {.job = "clicks", .agreement = "epochs=3; early stop=?"};
      EXPECT_TRUE(WriteFinishedJob(*files_, "model", end).ok());
    });
    const auto outcome = RunTraining(std::move(request), *files_, SystemClock(), {});
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_THAT(notes_, HasSubstr("job 'clicks' has ended before"));
  }
};

TEST_F(MissedEndTest, AWorkerSucceeds) {
  ExpectEnd(MakeTask("worker", R"("chief": ["127.0.0.1:1"])"));
}

TEST_F(MissedEndTest, AWorkerOfParameterServersSucceeds) {
  ExpectEnd(MakeTask("worker", R"("chief": ["127.0.0.1:1"], "ps": ["127.0.0.1:2"])"));
}

TEST_F(MissedEndTest, AParameterServerSucceeds) {
  ExpectEnd(MakeTask("ps", R"("chief": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"])"));
}

TEST_F(MissedEndTest, WithoutARecordTheOthersAreMissed) {
  TrainingRequest request = MakeTask("worker", R"("chief": ["127.0.0.1:1"])");
  request.role.rendezvous_seconds = 2;
  EXPECT_TRUE(absl::IsDeadlineExceeded(Run(request).status()));
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
