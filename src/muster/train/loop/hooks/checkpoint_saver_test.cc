#include "muster/train/loop/hooks/checkpoint_saver.h"

#include <chrono>
#include <functional>
#include <future>
#include <thread>

#include "muster/io/fault_file_system.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A disk on which no checkpoint is completed until Open().
class GateFileSystem : public io::FaultFileSystem {
 public:
  using io::FaultFileSystem::FaultFileSystem;
  void Open() { gate_.set_value(); }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (to.ends_with(".index") && opened_.wait_for(kLimit) != std::future_status::ready) {
      return absl::DeadlineExceededError("the gate was not opened in time");
    }
    return FaultFileSystem::Rename(from, to);
  }

 private:
  static constexpr std::chrono::seconds kLimit{60};
  std::promise<void> gate_;
  const std::shared_future<void> opened_ = gate_.get_future().share();
};

// Logs its calls, each with the step of the checkpoint and that of the training.
class ListenerLog : public CheckpointListener {
 public:
  absl::Status BeforeSave(Session& session, int64_t step) override {
    calls.push_back(StrCat("before ", step, " at ", session.step));
    return absl::OkStatus();
  }
  absl::StatusOr<bool> AfterSave(Session& session, int64_t step) override {
    EXPECT_EQ(session.checkpoint.prefix, StrCat("model/model.ckpt-", step));
    EXPECT_TRUE(session.files.Stat(session.checkpoint.prefix + ".index").ok());
    calls.push_back(StrCat("after ", step, " at ", session.step));
    return stop_after == step;
  }
  absl::Status End(Session&, int64_t step) override {
    calls.push_back(StrCat("end ", step));
    return absl::OkStatus();
  }

  std::vector<std::string> calls;
  int64_t stop_after = -1;
};

// Calls `run` after step `step`, when the saver's AfterRun has been called.
class AtStep : public Hook {
 public:
  AtStep(int64_t step, std::function<void()> run) : step_(step), run_(std::move(run)) {}
  absl::Status AfterRun(Session& session, const StepValues&) override {
    if (session.step == step_) run_();
    return absl::OkStatus();
  }

 private:
  const int64_t step_;
  const std::function<void()> run_;
};

class CheckpointSaverTest : public TrainingTest {
 protected:
  // Trains with a save every 5 steps through `files`.
  absl::StatusOr<TrainResult> TrainThrough(io::FileSystem& files, const std::string& folder) {
    const auto model = model::ParseModelSpec(*files_, kTestSpec, "spec.yaml");
    EXPECT_TRUE(model.ok()) << model.status();
    RunConfig config = Config(folder);
    config.seed = model->train.seed;
    config.save_checkpoints_steps = 5;
    const auto estimator = Estimator::Create(files, clock_, *model, config);
    EXPECT_TRUE(estimator.ok()) << estimator.status();
    Progress progress(ProgressStyle::kNone, 2, clock_);
    return (*estimator)->Train(Training(), progress, never_);
  }
};

TEST_F(CheckpointSaverTest, AFailureInTheBackgroundEndsTheTrainingWithItsCause) {
  ASSERT_TRUE(TrainThrough(*files_, "whole").ok());
  for (const int n : {1, 2, 7, 20, 30}) {
    const std::string folder = StrCat("model", n);
    io::FaultFileSystem files(*files_);
    // Each save renames one index file; the first renames of all are those of the spec and the
    // lease.
    files.FailNth(io::FileOperation::kRename, 2 + n, absl::ResourceExhaustedError("disk full"));
    const auto failed = TrainThrough(files, folder);
    EXPECT_TRUE(absl::IsResourceExhausted(failed.status())) << n << ": " << failed.status();
    EXPECT_THAT(std::string(failed.status().message()),
                AllOf(HasSubstr("disk full"), HasSubstr(StrCat("saving ", folder))));
    // A training from the last good checkpoint ends with the same weights.
    const auto resumed = TrainThrough(*files_, folder);
    ASSERT_TRUE(resumed.ok()) << resumed.status();
    EXPECT_EQ(Weights(folder), Weights("whole")) << n;
  }
}

TEST_F(CheckpointSaverTest, ABrokenNewestCheckpointIsSkippedForThePreviousOne) {
  ASSERT_TRUE(TrainThrough(*files_, "model").ok());
  const auto whole = Weights("model");
  const std::string path = "model/model.ckpt-57.data-00000-of-00001";
  std::string data = *io::ReadFile(*files_, path);
  data[data.size() / 2] ^= 1;
  ASSERT_TRUE(io::WriteFileAtomically(*files_, path, data).ok());
  const auto resumed = TrainThrough(*files_, "model");
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->first_step, 55);
  EXPECT_EQ(Weights("model"), whole);
}

TEST_F(CheckpointSaverTest, ATrainingDoesNotStartOverIfCheckpointsAreBroken) {
  TrainSpec spec = Training();
  spec.max_steps = 1;
  ASSERT_TRUE(Train("model", spec).ok());
  const auto names = files_->List("model");
  ASSERT_TRUE(names.ok());
  for (const std::string& name : *names) {
    if (name.find(".data-") == std::string::npos) continue;
    ASSERT_TRUE(io::WriteFileAtomically(*files_, StrCat("model/", name), "cut").ok());
  }
  const auto refused = Train("model", Training());
  EXPECT_TRUE(absl::IsDataLoss(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("no intact checkpoint in model"));
}

TEST_F(CheckpointSaverTest, TheTrainingContinuesDuringASaveWithListeners) {
  GateFileSystem files(*files_);
  const auto listener = std::make_shared<ListenerLog>();
  TrainSpec spec = Training();
  spec.saving_listeners = {listener};
  spec.max_steps = 9;
  spec.hooks = {std::make_shared<AtStep>(4, [&] {
    // The save at the start waits at the gate, so that the listener was not told of its end.
    EXPECT_THAT(listener->calls, ElementsAre("before 0 at 0"));
    files.Open();
  })};
  RunConfig config = Config("model");
  config.save_checkpoints_steps = 6;
  const auto model = model::ParseModelSpec(*files_, kTestSpec, "spec.yaml");
  const auto estimator = Estimator::Create(files, clock_, *model, config);
  Progress progress(ProgressStyle::kNone, 2, clock_);
  const auto result = (*estimator)->Train(spec, progress, never_);
  ASSERT_TRUE(result.ok()) << result.status();
  // The save of step 6 waits for the previous one, of whose end the listener was told by then.
  ASSERT_EQ(listener->calls.size(), 7u);
  EXPECT_THAT(listener->calls[1], testing::AnyOf("after 0 at 5", "after 0 at 6"));
  EXPECT_EQ(listener->calls[2], "before 6 at 6");
  EXPECT_THAT(listener->calls[3], testing::AnyOf("after 6 at 7", "after 6 at 8", "after 6 at 9"));
  EXPECT_EQ(listener->calls[4], "before 9 at 9");
  EXPECT_EQ(listener->calls[5], "after 9 at 9");
  EXPECT_EQ(listener->calls[6], "end 9");
}

TEST_F(CheckpointSaverTest, AListenerThatStopsLateStopsTheTraining) {
  const auto listener = std::make_shared<ListenerLog>();
  listener->stop_after = 5;
  TrainSpec spec = Training();
  spec.saving_listeners = {listener};
  RunConfig config = Config("model");
  config.save_checkpoints_steps = 5;
  const auto result = Train(config, spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(result->step, 5);
  EXPECT_LE(result->step, 10);  // the step at which the next save waits for it
  EXPECT_EQ(listener->calls.back(), StrCat("end ", result->step));
}

TEST_F(CheckpointSaverTest, ANewSessionWaitsForTheSaveInFlight) {
  const auto spec = model::ParseModelSpec(*files_, kTestSpec, "spec.yaml");
  const auto built = model::BuildModel(*spec, {});
  ASSERT_TRUE(built.ok()) << built.status();
  const auto variables = Variables::Create(*built, 1, /*with_slots=*/true);
  GateFileSystem files(*files_);
  const RunConfig config = Config("model");
  Progress progress(ProgressStyle::kNone, 2, clock_);
  Session session{.files = files,
                  .clock = clock_,
                  .config = config,
                  .model = *built,
                  .variables = **variables,
                  .events = nullptr,
                  .progress = progress};
  const auto listener = std::make_shared<ListenerLog>();
  const auto saver = NewCheckpointSaver(config, {listener});
  ASSERT_TRUE(saver->Begin(session).ok());
  ASSERT_TRUE(saver->AfterCreateSession(session).ok());
  ASSERT_TRUE(saver->BeforeRun(session).ok());
  EXPECT_THAT(listener->calls, ElementsAre("before 0 at 0"));
  const std::jthread opener([&] { files.Open(); });
  ASSERT_TRUE(saver->AfterCreateSession(session).ok());
  EXPECT_THAT(listener->calls, ElementsAre("before 0 at 0", "after 0 at 0"));
  EXPECT_TRUE(files_->Stat("model/model.ckpt-0.index").ok());
}

}  // namespace
}  // namespace muster::train
