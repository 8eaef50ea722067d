#include "muster/train/loop/hook.h"

#include <unistd.h>

#include <cmath>

#include "absl/strings/str_split.h"

#include "muster/train/loop/hooks/basic_hooks.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Records its calls, and stops or fails at one of them.
class Recorder : public Hook {
 public:
  Recorder(std::string name, std::vector<std::string>* calls)
      : name_(std::move(name)), calls_(calls) {}

  absl::Status Begin(Session& session) override { return Call("begin", session); }
  absl::Status AfterCreateSession(Session& session) override { return Call("create", session); }
  absl::Status BeforeRun(Session& session) override { return Call("before", session); }
  absl::Status AfterRun(Session& session, const StepValues&) override {
    return Call("after", session);
  }
  absl::Status End(Session& session) override { return Call("end", session); }

  std::string fail_at, stop_at;  // "after 2"

 private:
  absl::Status Call(const std::string& what, Session& session) {
    const std::string call = StrCat(what, " ", session.step);
    calls_->push_back(name_ + call);
    if (call == stop_at) session.RequestStop(StrCat(name_, "asked"));
    return call == fail_at ? absl::InternalError("told to fail") : absl::OkStatus();
  }

  const std::string name_;
  std::vector<std::string>* const calls_;
};

// Advances the clock by a second after each step.
class Ticker : public Hook {
 public:
  explicit Ticker(FakeClock* clock) : clock_(clock) {}
  absl::Status AfterRun(Session&, const StepValues&) override {
    clock_->Advance(1);
    return absl::OkStatus();
  }

 private:
  FakeClock* const clock_;
};

class HookTest : public TrainingTest {
 protected:
  // 2 batches.
  TrainSpec ShortTraining() {
    Write("short.csv", Csv(20));
    TrainSpec spec = Training("short.csv");
    spec.input.reader.epochs = 1;
    return spec;
  }
  std::shared_ptr<Recorder> NewRecorder(const std::string& name = "") {
    return std::make_shared<Recorder>(name, &calls_);
  }

  std::vector<std::string> calls_;
};

TEST_F(HookTest, AtTheEndOfDataAfterRunIsSkippedAndEndIsCalled) {
  TrainSpec spec = ShortTraining();
  spec.hooks = {NewRecorder()};
  ASSERT_TRUE(Train("model", spec).ok());
  EXPECT_THAT(calls_, ElementsAre("begin 0", "create 0", "before 0", "after 1", "before 1",
                                  "after 2", "before 2", "end 2"));
}

TEST_F(HookTest, HooksRunInOrder) {
  TrainSpec spec = ShortTraining();
  spec.hooks = {NewRecorder("a "), NewRecorder("b ")};
  spec.max_steps = 1;
  ASSERT_TRUE(Train("model", spec).ok());
  EXPECT_THAT(calls_,
              ElementsAre("a begin 0", "b begin 0", "a create 0", "b create 0", "a before 0",
                          "b before 0", "a after 1", "b after 1", "a end 1", "b end 1"));
}

TEST_F(HookTest, AfterAnErrorNeitherAfterRunNorEndIsCalled) {
  for (const std::string at : {"begin 0", "create 0", "before 1", "after 1", "end 2"}) {
    calls_.clear();
    TrainSpec spec = ShortTraining();
    const auto recorder = NewRecorder();
    recorder->fail_at = at;
    spec.hooks = {recorder};
    const auto result = Train(StrCat("model", at), spec);
    EXPECT_TRUE(absl::IsInternal(result.status())) << at;
    EXPECT_EQ(calls_.back(), at);
  }
}

TEST_F(HookTest, AnErrorOfTheInputSkipsEndToo) {
  Write("bad.csv", "id,x,color,y\n1,0.5,red,7\n");
  TrainSpec spec = Training("bad.csv");
  spec.hooks = {NewRecorder()};
  EXPECT_FALSE(Train("model", spec).ok());
  EXPECT_THAT(calls_, ElementsAre("begin 0", "create 0", "before 0"));
}

TEST_F(HookTest, AHookCanStopTheRunWithAReason) {
  TrainSpec spec = Training();
  const auto recorder = NewRecorder("a ");
  recorder->stop_at = "after 5";
  spec.hooks = {recorder};
  const auto result = Train("model", spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->step, 5);
  EXPECT_FALSE(result->interrupted);
  EXPECT_EQ(result->stop_reason, "a asked");
  EXPECT_THAT(result->checkpoint, HasSubstr("model.ckpt-5"));
}

TEST_F(HookTest, AStopBeforeAStepReadsNoBatch) {
  TrainSpec spec = Training();
  const auto recorder = NewRecorder();
  recorder->stop_at = "before 3";
  spec.hooks = {recorder};
  const auto result = Train("model", spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->step, 3);
  EXPECT_THAT(calls_, testing::Contains("end 3"));
}

TEST_F(HookTest, ListenersSeeEachCheckpointAndCanStop) {
  class Listener : public CheckpointListener {
   public:
    absl::Status Begin(Session&) override { return Note("begin"); }
    absl::Status BeforeSave(Session&, int64_t step) override {
      return Note(StrCat("before ", step));
    }
    bool WaitsForSave(Session&, int64_t) override { return true; }
    absl::StatusOr<bool> AfterSave(Session& session, int64_t step) override {
      EXPECT_EQ(session.step, step);
      EXPECT_TRUE(session.files.Stat(session.checkpoint.prefix + ".index").ok());
      Note(StrCat("after ", step)).IgnoreError();
      return step == 10;
    }
    absl::Status End(Session&, int64_t step) override { return Note(StrCat("end ", step)); }
    absl::Status Note(const std::string& call) {
      calls.push_back(call);
      return absl::OkStatus();
    }
    std::vector<std::string> calls;
  };
  const auto listener = std::make_shared<Listener>();
  TrainSpec spec = Training();
  spec.saving_listeners = {listener};
  RunConfig config = Config("model");
  config.save_checkpoints_steps = 5;
  const auto result = Train(config, spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->step, 10);
  EXPECT_THAT(listener->calls, ElementsAre("begin", "before 0", "after 0", "before 5", "after 5",
                                           "before 10", "after 10", "end 10"));
}

TEST_F(HookTest, NanTensorCanStopAndLeavesTheWeightsUnchanged) {
  std::string wild(kTestSpec);
  wild.replace(wild.find("learning_rate: 0.05"), 19, "learning_rate: 1e30");
  TrainSpec spec = Training();
  spec.hooks = {NewNanTensor(/*fail=*/false)};
  const auto result = Train("model", spec, wild);
  // The Estimator's own NanTensor comes after the user's and still fails.
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("at step "));
  RunConfig config = Config("model2");
  config.nan_loss_is_failure = false;
  const auto stopped = Train(config, Training(), wild);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_THAT(stopped->stop_reason, HasSubstr(StrCat("at step ", stopped->step + 1)));
  EXPECT_THAT(stopped->checkpoint, HasSubstr(StrCat("model.ckpt-", stopped->step)));
}

TEST_F(HookTest, LoggingTensorLogsByStepsByTimeAndAtTheEnd) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  {
    Progress progress(ProgressStyle::kLog, ends[1], clock_);
    TrainSpec spec = Training();
    spec.max_steps = 11;
    spec.hooks = {NewLoggingTensor({.steps = 5}), NewLoggingTensor({.secs = 2, .at_end = true}),
                  std::make_shared<Ticker>(&clock_)};
    ASSERT_TRUE(NewEstimator(kTestSpec, "model")->Train(spec, progress, never_).ok());
  }
  close(ends[1]);
  std::string text(4096, '\0');
  text.resize(static_cast<size_t>(read(ends[0], text.data(), text.size())));
  close(ends[0]);
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  std::erase_if(lines, [](const std::string& line) { return !line.starts_with("step "); });
  for (std::string& line : lines) line.erase(line.find(':'), line.find('(') - line.find(':'));
  // A second of the clock passes after each step.
  EXPECT_THAT(
      lines, ElementsAre("step 3(2.000 s)", "step 5(4.000 s)", "step 5(2.000 s)", "step 7(2.000 s)",
                         "step 9(2.000 s)", "step 10(5.000 s)", "step 11(2.000 s)"));
}

TEST_F(HookTest, GlobalStepWaiterWaitsUntilTheStepOrItsLimit) {
  int64_t step = 0;
  GlobalStepWaiterOptions options;
  options.wait_until = 3;
  options.read_step = [&] { return step; };
  options.pause = [&] {
    ++step;
    clock_.Advance(1);
    return true;
  };
  TrainSpec spec = ShortTraining();
  spec.hooks = {NewGlobalStepWaiter(options)};
  ASSERT_TRUE(Train("model", spec).ok());
  EXPECT_EQ(step, 3);

  options.wait_until = 100;
  options.limit_secs = 10;
  spec.hooks = {NewGlobalStepWaiter(options)};
  const auto late = Train("model2", spec);
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.status()));
  EXPECT_THAT(std::string(late.status().message()), HasSubstr("global step 100"));

  options.pause = [] { return false; };
  spec.hooks = {NewGlobalStepWaiter(options)};
  const auto stopped = Train("model3", spec);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_EQ(stopped->step, 0);
}

TEST_F(HookTest, FinalOpsRunAfterTheLastCheckpoint) {
  std::string checkpoint;
  TrainSpec spec = ShortTraining();
  spec.hooks = {NewFinalOps([&](Session& session) {
    checkpoint = session.checkpoint.prefix;
    return absl::OkStatus();
  })};
  ASSERT_TRUE(Train("model", spec).ok());
  EXPECT_THAT(checkpoint, HasSubstr("model.ckpt-2"));
}

TEST_F(HookTest, SummariesAndTheStepCounterHaveTheirOwnIntervals) {
  RunConfig config = Config("model");
  config.save_summary_steps = 20;
  config.log_step_count_steps = 30;
  ASSERT_TRUE(Train(config, Training()).ok());
  std::map<std::string, std::vector<int64_t>> steps;
  for (const auto& event : Events("model")) steps[event.tag].push_back(event.step);
  EXPECT_THAT(steps["loss"], ElementsAre(20, 40, 57));
  EXPECT_THAT(steps["global_step/sec"], ElementsAre(30, 57));
}

}  // namespace
}  // namespace muster::train
