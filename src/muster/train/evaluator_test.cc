#include "muster/train/evaluator.h"

#include <deque>
#include <functional>

#include "muster/checkpoint/lease.h"
#include "muster/train/loop/exporter.h"
#include "muster/train/loop/exporters/exporters.h"
#include "muster/train/loop/hooks/early_stopping.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A watched training that calls the functions of `script` one by one, and then ends.
class ScriptedTraining : public TrainingWatch {
 public:
  std::deque<std::function<void()>> script;
  absl::Status failure;  // the status with which it ends after the script
  bool left = false;

  absl::StatusOr<bool> AwaitEnd(double) override {
    if (script.empty()) {
      MUSTER_RETURN_IF_ERROR(failure);
      return true;
    }
    const auto next = std::move(script.front());
    script.pop_front();
    next();
    return false;
  }
  absl::Status Leave() override {
    left = true;
    return absl::OkStatus();
  }
};

// An exporter that exports nothing, calls `look` and returns its errors.
class Watching : public Exporter {
 public:
  explicit Watching(std::function<absl::Status()> look) : look_(std::move(look)) {}
  const std::string& name() const override { return name_; }
  absl::StatusOr<std::string> Export(const ExportContext&, const Metrics&, bool) override {
    MUSTER_RETURN_IF_ERROR(look_());
    return std::string();
  }

 private:
  const std::string name_ = "watching";
  const std::function<absl::Status()> look_;
};

class EvaluatorTest : public TrainingTest {
 protected:
  EvaluatorTest() {
    eval_ = Evaluation();
    eval_.start_delay_secs = eval_.throttle_secs = 0;
  }

  // Writes a checkpoint of that step, as the chief does.
  void TrainTo(int64_t step, int keep = 5) {
    RunConfig config = Config("model");
    config.seed = 5;
    config.keep_checkpoint_max = keep;
    TrainSpec spec = Training();
    spec.max_steps = step;
    ASSERT_TRUE(Train(config, spec).ok());
  }
  std::function<void()> Trains(int64_t step) {
    return [this, step] { TrainTo(step); };
  }
  std::function<void()> Waits(double seconds) {
    return [this, seconds] { clock_.Advance(seconds); };
  }

  absl::StatusOr<TrainAndEvaluateResult> Run() {
    evaluated_.clear();
    RunConfig config = Config("model");
    config.task_type = "evaluator";
    eval_.training = &training_;
    const auto model = model::ParseModelSpec(*files_, kTestSpec, "spec.yaml");
    MUSTER_ASSIGN_OR_RETURN(const auto estimator,
                            Estimator::Create(*files_, clock_, *model, config));
    Progress progress(ProgressStyle::kNone, 2, clock_);
    return TrainAndEvaluate(*estimator, Training(), eval_, progress, stop_,
                            [&](const EvalResult& result, const std::vector<std::string>&) {
                              evaluated_.push_back(result.step);
                            });
  }
  std::vector<std::string> Exports(const std::string& name) {
    return files_->List("model/export/" + name).value_or(std::vector<std::string>());
  }

  ScriptedTraining training_;
  EvalSpec eval_;
  std::atomic<bool> stop_{false};
  std::vector<int64_t> evaluated_;
};

TEST_F(EvaluatorTest, EvaluatesCheckpointsAsTheyAppearAndTheLastOne) {
  training_.script = {[] {}, Trains(10), [] {}, Trains(20), Trains(30)};
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(evaluated_, ElementsAre(10, 20, 30));
  EXPECT_EQ(result->evaluation->step, 30);
  EXPECT_TRUE(training_.left);
  std::vector<int64_t> steps;
  for (const auto& event : Events("model/eval")) {
    if (event.tag == "loss") steps.push_back(event.step);
  }
  EXPECT_THAT(steps, ElementsAre(10, 20, 30));
}

TEST_F(EvaluatorTest, DelayAndThrottleApplyToAllButTheLastCheckpoint) {
  eval_.start_delay_secs = 100;
  eval_.throttle_secs = 60;
  training_.script = {Trains(10), Waits(100), Trains(20), Waits(59), Waits(1), Trains(30)};
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(evaluated_, ElementsAre(10, 20, 30));
}

TEST_F(EvaluatorTest, ATrainingThatHadNothingToDoIsEvaluated) {
  TrainTo(10);
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(evaluated_, ElementsAre(10));
}

TEST_F(EvaluatorTest, ExportersRunInTheEvaluatorAndTheFinalOneAtTheEnd) {
  eval_.exporters = {NewFinalExporter(), *NewLatestExporter(), *NewBestExporter()};
  training_.script = {Trains(10), Trains(40), [] {}};
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(evaluated_, ElementsAre(10, 40, 40));
  EXPECT_EQ(Exports("final").size(), 1u);
  EXPECT_EQ(Exports("latest").size(), 2u);
  EXPECT_GE(Exports("best").size(), 1u);
}

TEST_F(EvaluatorTest, TheCheckpointThatItReadsIsLeased) {
  std::vector<std::string> names;
  eval_.exporters = {std::make_shared<Watching>([&] {
    names = files_->List("model").value();
    return absl::OkStatus();
  })};
  TrainTo(10);
  training_.script = {[] {}, Trains(20)};
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(names, Contains("model.ckpt-20.lease-evaluator-0"));
  names = files_->List("model").value();
  for (const std::string& name : names) {
    EXPECT_EQ(checkpoint::GetLeasedCheckpoint(name), "") << name;
  }
}

TEST_F(EvaluatorTest, ExportsTheCheckpointThatItsLeaseKeeps) {
  // The chief continues while a checkpoint is evaluated, and keeps only one checkpoint.
  int64_t next = 20;
  eval_.exporters = {std::make_shared<Watching>([&] {
                       if (next <= 30) TrainTo(next, /*keep=*/1);
                       next += 10;
                       return absl::OkStatus();
                     }),
                     *NewLatestExporter()};
  training_.script = {[this] { TrainTo(10, 1); }, [] {}};
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(evaluated_, ElementsAre(10, 20, 30));
  EXPECT_EQ(Exports("latest").size(), 3u);
}

TEST_F(EvaluatorTest, TheBestExportIsNotLostIfTheEvaluatorIsKilled) {
  TrainTo(40);
  eval_.exporters = {*NewBestExporter(),
                     std::make_shared<Watching>([] { return absl::InternalError("killed here"); })};
  EXPECT_FALSE(Run().ok());
  EXPECT_EQ(Exports("best").size(), 1u);
  EXPECT_FALSE(files_->Stat("model/eval").ok()) << "a later run would think this evaluation done";
  // The same must hold if the failure comes before the export.
  ASSERT_TRUE(files_->RemoveAll("model/export").ok());
  std::swap(eval_.exporters[0], eval_.exporters[1]);
  EXPECT_FALSE(Run().ok());
  EXPECT_THAT(Exports("best"), IsEmpty());
  eval_.exporters = {*NewBestExporter()};
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(Exports("best").size(), 1u);
}

TEST_F(EvaluatorTest, LeftoversOfAKilledExportAreRemoved) {
  ASSERT_TRUE(files_->MakeFolders("model/export/best/.1700000000.tmp-7").ok());
  Write("model/export/best/.1700000000.tmp-7/saved_model.pb", "half");
  TrainTo(10);
  eval_.exporters = {*NewBestExporter()};
  ASSERT_TRUE(Run().ok());
  ASSERT_EQ(Exports("best").size(), 1u);
  EXPECT_TRUE(files_->Stat("model/export/best/" + Exports("best")[0] + "/saved_model.pb").ok());
}

TEST_F(EvaluatorTest, AFailedTrainingIsReported) {
  TrainTo(10);
  training_.failure = absl::DeadlineExceededError("waited 300 s for the chief at tcp://h:1");
  const auto result = Run();
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(ToStd(result.status().message()), HasSubstr("the chief at tcp://h:1"));
  EXPECT_FALSE(training_.left);
}

TEST_F(EvaluatorTest, ATrainingWithoutACheckpointIsReported) {
  const auto result = Run();
  EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(ToStd(result.status().message()), HasSubstr("--model-dir"));
}

TEST_F(EvaluatorTest, MissingDataIsReportedAtOnce) {
  eval_.input.source.patterns = {"nothing-*.csv"};
  training_.script = {Trains(10), [] {}};
  const auto result = Run();
  EXPECT_TRUE(absl::IsNotFound(result.status())) << result.status();
  EXPECT_THAT(ToStd(result.status().message()), HasSubstr("nothing-*.csv"));
}

TEST_F(EvaluatorTest, ASignalEndsTheEvaluatorBetweenEvaluations) {
  training_.script = {Trains(10), [] {}, [this] { stop_ = true; }, Trains(20)};
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->training.interrupted);
  EXPECT_THAT(evaluated_, ElementsAre(10));
  EXPECT_FALSE(training_.left);
}

TEST_F(EvaluatorTest, EarlyStoppingOfTheChiefSeesItsEvaluations) {
  // The chief trains in the evaluator's script; its next check sees every evaluation.
  TrainTo(10);
  ASSERT_TRUE(Run().ok());
  RunConfig config = Config("model");
  config.seed = 5;
  TrainSpec spec = Training();
  const auto rule = ParseEarlyStopping("loss:higher:0.0001");
  ASSERT_TRUE(rule.ok());
  spec.hooks = {NewEarlyStopping(*rule)};
  const auto result = Train(config, spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->step, 10);
  EXPECT_THAT(result->stop_reason, HasSubstr("at step 10"));
}

TEST_F(EvaluatorTest, AnEvaluatorWithoutATrainingIsRefused) {
  RunConfig config = Config("model");
  config.task_type = "evaluator";
  const auto model = model::ParseModelSpec(*files_, kTestSpec, "spec.yaml");
  const auto estimator = Estimator::Create(*files_, clock_, *model, config);
  Progress progress(ProgressStyle::kNone, 2, clock_);
  const auto result = TrainAndEvaluate(**estimator, Training(), eval_, progress, never_);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace muster::train
