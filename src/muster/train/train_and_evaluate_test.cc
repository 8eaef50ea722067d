#include "muster/train/train_and_evaluate.h"

#include <unistd.h>

#include "muster/base/test_size.h"
#include "muster/io/fault_file_system.h"
#include "muster/train/loop/exporters/exporters.h"
#include "muster/train/loop/hooks/early_stopping.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Between two crashes: a build without sanitizers tries each change of a file.
constexpr int kChangesApart = kUnderSanitizer ? 4 : 1;

class TrainAndEvaluateTest : public TrainingTest {
 protected:
  TrainAndEvaluateTest() {
    config_ = Config("model");
    config_.seed = 5;
    config_.save_checkpoints_steps = 10;
    eval_ = Evaluation();
    eval_.start_delay_secs = eval_.throttle_secs = 0;
  }

  absl::StatusOr<TrainAndEvaluateResult> Run(const TrainSpec& train,
                                             std::string_view yaml = kTestSpec) {
    evaluated_.clear();
    epochs_.clear();
    exports_.clear();
    const auto spec = model::ParseModelSpec(*files_, yaml, "spec.yaml");
    EXPECT_TRUE(spec.ok()) << spec.status();
    MUSTER_ASSIGN_OR_RETURN(const auto estimator,
                            Estimator::Create(*files_, clock_, *spec, config_));
    Progress progress(ProgressStyle::kNone, 2, clock_);
    return TrainAndEvaluate(
        *estimator, train, eval_, progress, stop_,
        [this](const EvalResult& result, const std::vector<std::string>& exports) {
          evaluated_.push_back(result.step);
          if (result.training) epochs_.push_back(result.training->epoch);
          exports_.insert(exports_.end(), exports.begin(), exports.end());
        });
  }
  std::vector<std::string> Exports(const std::string& name) {
    return files_->List("model/export/" + name).value_or(std::vector<std::string>());
  }
  // Does a run that crashes at that change of a file, counted from 1. Returns whether it crashed.
  bool CrashAt(int64_t change, const TrainSpec& train) {
    const auto spec = model::ParseModelSpec(*files_, kTestSpec, "spec.yaml");
    io::FaultFileSystem faulty(*files_);
    faulty.CrashAtChange(change);
    const auto estimator = Estimator::Create(faulty, clock_, *spec, config_);
    if (!estimator.ok()) return true;
    Progress progress(ProgressStyle::kNone, 2, clock_);
    return !TrainAndEvaluate(**estimator, train, eval_, progress, stop_, nullptr).ok();
  }
  // The temporary files and folders below `folder`.
  std::vector<std::string> Temporaries(const std::string& folder) {
    std::vector<std::string> found;
    for (const std::string& name : files_->List(folder).value_or(std::vector<std::string>())) {
      const std::string path = io::JoinPath(folder, name);
      if (io::IsTemporaryName(name)) {
        found.push_back(path);
      } else if (const auto info = files_->Stat(path); info.ok() && info->is_folder) {
        for (std::string& inner : Temporaries(path)) found.push_back(std::move(inner));
      }
    }
    return found;
  }
  // Renames the temporary files of this process, as if a killed process had left them.
  void RenameTemporariesToThoseOfAKilledProcess() {
    const std::string own = StrCat(".tmp-", getpid(), "-");
    for (const std::string& path : Temporaries("model")) {
      const std::string other = StrCat(path.substr(0, path.rfind(own)), ".tmp-7-0");
      ASSERT_TRUE(files_->Rename(path, other).ok());
    }
    files_->Remove("model/muster.lease").IgnoreError();
  }

  RunConfig config_;
  EvalSpec eval_;
  std::atomic<bool> stop_{false};
  std::vector<int64_t> evaluated_, epochs_;
  std::vector<std::string> exports_;
};

// Moves the clock at each step.
class Tick : public Hook {
 public:
  explicit Tick(FakeClock* clock) : clock_(clock) {}
  absl::Status AfterRun(Session&, const StepValues&) override {
    clock_->Advance(1);
    return absl::OkStatus();
  }

 private:
  FakeClock* const clock_;
};

TEST_F(TrainAndEvaluateTest, EvaluatesEachCheckpointButTheFirst) {
  const auto result = Run(Training());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(evaluated_, ElementsAre(10, 20, 30, 40, 50, 57));
  EXPECT_EQ(result->training.step, 57);
  EXPECT_EQ(result->evaluation->step, 57);
  std::vector<int64_t> steps;
  for (const auto& event : Events("model/eval")) {
    if (event.tag == "loss") steps.push_back(event.step);
  }
  EXPECT_THAT(steps, ElementsAre(10, 20, 30, 40, 50, 57));
}

TEST_F(TrainAndEvaluateTest, EvaluatesOnlyAtTheEndOfEachEpoch) {
  eval_.every_epoch = true;
  const auto result = Run(Training());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(evaluated_, ElementsAre(19, 38, 57));
  EXPECT_THAT(epochs_, ElementsAre(1, 2, 3));
  EXPECT_EQ(result->evaluation->training->metrics.back().second, result->training.loss);
  ASSERT_TRUE(Train("alone", Training()).ok());
  EXPECT_TRUE(Weights("model") == Weights("alone"));
}

// The checkpoint of the epoch's last step may have been saved for another reason.
TEST_F(TrainAndEvaluateTest, AnEpochIsEvaluatedEvenIfItsCheckpointWasSavedBefore) {
  eval_.every_epoch = true;
  config_.save_checkpoints_steps = 19;
  ASSERT_TRUE(Run(Training()).ok());
  EXPECT_THAT(evaluated_, ElementsAre(19, 38, 57));
}

TEST_F(TrainAndEvaluateTest, EarlyStoppingAfterAnEpochActsBeforeTheNextStep) {
  eval_.every_epoch = true;
  TrainSpec spec = Training();
  spec.hooks.push_back(NewEarlyStopping(*ParseEarlyStopping("loss:lower:1000:min_steps=20")));
  const auto result = Run(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(evaluated_, ElementsAre(19, 38));
  EXPECT_EQ(result->training.step, 38);
}

// The next run evaluates an epoch that has a checkpoint and no evaluation, and evaluates no other
// epoch again.
TEST_F(TrainAndEvaluateTest, AfterACrashAnywhereEachEpochIsEvaluated) {
  eval_.every_epoch = true;
  config_.save_checkpoints_steps = 1000;
  TrainSpec spec = Training();
  spec.input.reader.epochs = 2;
  int change = 1;
  for (; CrashAt(change, spec); change += kChangesApart) {
    RenameTemporariesToThoseOfAKilledProcess();
    const auto result = Run(spec);
    ASSERT_TRUE(result.ok()) << result.status() << ", crash at change " << change;
    std::vector<int64_t> steps;
    for (const auto& event : Events("model/eval")) {
      if (event.tag == "loss") steps.push_back(event.step);
    }
    std::sort(steps.begin(), steps.end());
    ASSERT_THAT(steps, testing::IsSupersetOf<int64_t>({19, 38})) << "crash at " << change;
    ASSERT_LE(steps.size(), 3) << "crash at " << change;
    ASSERT_TRUE(files_->RemoveAll("model").ok());
  }
  EXPECT_GT(change, 20);
}

TEST_F(TrainAndEvaluateTest, InvalidEvaluationDataIsFoundBeforeTheTraining) {
  Write("header.csv", "id,x,color,y\n");
  Write("unlabelled.csv", "id,x,color\n1,0.5,red\n");
  for (const std::string data : {"nowhere.csv", "header.csv", "unlabelled.csv"}) {
    eval_.input.source.patterns = {data};
    const auto result = Run(Training());
    EXPECT_THAT(ToStd(result.status().message()), StartsWith("the data to evaluate on: ")) << data;
    EXPECT_FALSE(files_->Stat("model").ok()) << data;
  }
}

TEST_F(TrainAndEvaluateTest, EvaluationsDoNotChangeTheTraining) {
  ASSERT_TRUE(Run(Training()).ok());
  ASSERT_TRUE(Train("alone", Training()).ok());
  EXPECT_TRUE(Weights("model") == Weights("alone"));
}

TEST_F(TrainAndEvaluateTest, AfterACrashAnywhereTheNextRunLeavesNoTemporaryFile) {
  config_.save_checkpoints_steps = 2;
  eval_.exporters = {*NewBestExporter(), NewFinalExporter()};
  TrainSpec spec = Training();
  spec.max_steps = 4;
  int change = 1, with_temporaries = 0;
  for (; CrashAt(change, spec); change += kChangesApart) {
    RenameTemporariesToThoseOfAKilledProcess();
    with_temporaries += Temporaries("model").empty() ? 0 : 1;
    const auto result = Run(spec);
    ASSERT_TRUE(result.ok()) << result.status() << ", crash at change " << change;
    ASSERT_THAT(Temporaries("model"), testing::IsEmpty()) << "crash at change " << change;
    ASSERT_TRUE(files_->RemoveAll("model").ok());
  }
  EXPECT_GT(change, 50);
  EXPECT_GT(with_temporaries, 20 / kChangesApart);
}

TEST_F(TrainAndEvaluateTest, TheLastCheckpointIsEvaluatedOnce) {
  TrainSpec spec = Training();
  spec.max_steps = 20;
  ASSERT_TRUE(Run(spec).ok());
  EXPECT_THAT(evaluated_, ElementsAre(10, 20));
}

TEST_F(TrainAndEvaluateTest, ThrottleAndDelayAreHonoured) {
  TrainSpec spec = Training();
  // One second passes per step. Tick is the first hook, so that the clock has moved when a
  // checkpoint is saved.
  spec.hooks = {std::make_shared<Tick>(&clock_)};
  eval_.throttle_secs = 15;
  ASSERT_TRUE(Run(spec).ok());
  EXPECT_THAT(evaluated_, ElementsAre(10, 30, 50, 57));
  config_.model_dir = "delayed";
  eval_.throttle_secs = 0;
  eval_.start_delay_secs = 25;
  ASSERT_TRUE(Run(spec).ok());
  EXPECT_THAT(evaluated_, ElementsAre(30, 40, 50, 57));
}

TEST_F(TrainAndEvaluateTest, TheFinalExportIsMadeWhenTheDataEnds) {
  eval_.exporters = {NewFinalExporter(), *NewLatestExporter("latest", 3)};
  const auto result = Run(Training());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Exports("final").size(), 1u);
  EXPECT_EQ(Exports("latest").size(), 3u);
  EXPECT_EQ(exports_.size(), 7u);
  EXPECT_EQ(result->exports.size(), 2u);
  EXPECT_TRUE(files_->Stat(result->exports[0] + "/saved_model.pb").ok());
}

TEST_F(TrainAndEvaluateTest, TheFinalExportOfACheckpointEvaluatedBefore) {
  eval_.exporters = {NewFinalExporter(), *NewLatestExporter()};
  TrainSpec spec = Training();
  spec.max_steps = 20;
  ASSERT_TRUE(Run(spec).ok());
  EXPECT_EQ(Exports("final").size(), 1u);
  EXPECT_EQ(Exports("latest").size(), 2u);
}

TEST_F(TrainAndEvaluateTest, NothingToTrainStillEvaluatesAndExports) {
  TrainSpec spec = Training();
  spec.max_steps = 20;
  ASSERT_TRUE(Run(spec).ok());
  eval_.exporters = {NewFinalExporter(), *NewBestExporter()};
  const auto again = Run(spec);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(evaluated_, ElementsAre(20));
  EXPECT_EQ(again->exports.size(), 2u);
  // An equal result is not better than the best one.
  const auto third = Run(spec);
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_EQ(third->exports.size(), 1u);
}

TEST_F(TrainAndEvaluateTest, BestUsesTheNamedEvaluation) {
  eval_.name = "test";
  eval_.exporters = {*NewBestExporter({.metric = "auc", .higher_is_better = true})};
  ASSERT_TRUE(Run(Training()).ok());
  double best = 0;
  size_t improvements = 0;
  for (const auto& event : Events("model/eval_test")) {
    if (event.tag != "auc" || event.value <= best) continue;
    best = event.value;
    ++improvements;
  }
  EXPECT_EQ(exports_.size(), improvements);
}

TEST_F(TrainAndEvaluateTest, EarlyStoppingLooksAfterEachEvaluation) {
  TrainSpec spec = Training();
  spec.hooks = {
      NewEarlyStopping({.kind = EarlyStopping::Kind::kHigher, .metric = "auc", .threshold = 0})};
  const auto result = Run(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->training.step, 10);
  EXPECT_THAT(result->training.stop_reason, HasSubstr("metric 'auc'"));
  EXPECT_THAT(evaluated_, ElementsAre(10));
}

TEST_F(TrainAndEvaluateTest, ASignalEndsTheTrainingWithoutAnEvaluation) {
  stop_ = true;
  const auto result = Run(Training());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->training.interrupted);
  EXPECT_FALSE(result->evaluation.has_value());
}

TEST_F(TrainAndEvaluateTest, ResumedTrainingSkipsTheCheckpointItBeganFrom) {
  TrainSpec spec = Training();
  spec.max_steps = 10;
  ASSERT_TRUE(Run(spec).ok());
  spec.max_steps = 25;
  ASSERT_TRUE(Run(spec).ok());
  EXPECT_THAT(evaluated_, ElementsAre(20, 25));
}

TEST_F(TrainAndEvaluateTest, StepsCountsTheStepsOfThisRun) {
  TrainSpec spec = Training();
  spec.steps = 7;
  EXPECT_EQ(Run(spec)->training.step, 7);
  EXPECT_EQ(Run(spec)->training.step, 14);
}

TEST_F(TrainAndEvaluateTest, NoTaskOfAClusterTrainsAlone) {
  const struct {
    const char* type;
    int id, workers, ps;
    bool in_cluster;
    absl::StatusCode code;
    const char* message;
  } cases[] = {
      {"evaluator", 1, 0, 0, false, absl::StatusCode::kInvalidArgument,
       "there can only be one evaluator task (with task id 0), given task id 1"},
      {"evaluator", 0, 0, 0, false, absl::StatusCode::kUnimplemented, "trains in one process"},
      {"ps", 0, 1, 1, true, absl::StatusCode::kUnimplemented, "task 0 of type 'ps'"},
      {"chief", 0, 3, 0, true, absl::StatusCode::kUnimplemented, "trains in one process"},
      {"chief", 0, 1, 0, true, absl::StatusCode::kOk, ""},
  };
  for (const auto& test : cases) {
    config_.model_dir = StrCat("model_", test.type, test.id, test.workers);
    config_.task_type = test.type;
    config_.task_id = test.id;
    config_.num_worker_replicas = test.workers;
    config_.num_ps_replicas = test.ps;
    config_.is_chief = std::string("chief") == test.type;
    config_.cluster.clear();
    if (test.in_cluster) config_.cluster["chief"] = {"host:1"};
    const auto result = Run(Training());
    EXPECT_EQ(result.status().code(), test.code) << test.type << result.status();
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(test.message));
    EXPECT_THAT(evaluated_, ElementsAre());
  }
}

}  // namespace
}  // namespace muster::train
