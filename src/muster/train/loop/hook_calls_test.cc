#include "muster/train/loop/hook_calls.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_split.h"

#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A HookCalls whose answers are written in advance, and the calls that it made.
class HookCallsTest : public TrainingTest {
 protected:
  HookCallsTest() : out_(open_memstream(&text_, &size_)) { EXPECT_EQ(pipe(ends_), 0); }
  ~HookCallsTest() override {
    std::fclose(out_);
    std::free(text_);  // NOLINT(cppcoreguidelines-no-malloc): open_memstream's
    close(ends_[0]);
    if (ends_[1] >= 0) close(ends_[1]);
  }

  std::shared_ptr<HookCalls> Calls(const std::vector<std::string>& wanted,
                                   const std::string& answers) {
    EXPECT_EQ(write(ends_[1], answers.data(), answers.size()),
              static_cast<ssize_t>(answers.size()));
    close(std::exchange(ends_[1], -1));
    auto calls = HookCalls::Create(wanted, out_, ends_[0]);
    EXPECT_TRUE(calls.ok()) << calls.status();
    return *calls;
  }

  static std::string Go(int times) {
    std::string answers;
    for (int i = 0; i < times; ++i) answers += "{}\n";
    return answers;
  }

  // The calls, such as "train.end 2".
  std::vector<std::string> Asked() {
    std::vector<std::string> asked;
    for (const auto line : absl::StrSplit(std::string(text_, size_), '\n', absl::SkipEmpty())) {
      std::string text(ToStd(line));
      const std::string front = "{\"event\":\"call\",\"call\":\"";
      EXPECT_TRUE(text.starts_with(front)) << text;
      text = text.substr(front.size(), text.find(",\"loss\"") - front.size());
      asked.push_back(text.substr(0, text.find('"')) + " " +
                      text.substr(text.rfind(':') + 1, text.find('}') - text.rfind(':') - 1));
    }
    return asked;
  }

  int ends_[2] = {-1, -1};
  char* text_ = nullptr;
  size_t size_ = 0;
  std::FILE* out_;
};

TEST_F(HookCallsTest, ATrainingMakesCallsAtItsStepsAndSaves) {
  const auto calls = Calls({"train.begin", "train.create", "train.before_run", "train.after_run",
                            "train.end", "save.begin", "save.before", "save.after", "save.end"},
                           Go(100));
  TrainSpec spec = Training();
  spec.max_steps = 2;
  spec.hooks = {NewCalledHook(calls, ModeKeys::kTrain)};
  spec.saving_listeners = {NewCalledListener(calls)};
  ASSERT_TRUE(Train("model", spec).ok());
  EXPECT_THAT(Asked(), ElementsAre("save.begin 0", "train.begin 0", "save.before 0", "save.after 0",
                                   "train.create 0", "train.before_run 0", "train.after_run 1",
                                   "train.before_run 1", "train.after_run 2", "save.before 2",
                                   "save.after 2", "save.end 2", "train.end 2"));
  EXPECT_THAT(std::string(text_, size_), HasSubstr("\"step\":1,\"loss\":0."));
  EXPECT_THAT(std::string(text_, size_), HasSubstr(",\"rows\":16}\n"));
}

TEST_F(HookCallsTest, UnwantedCallsAreNotMade) {
  const auto calls = Calls({"train.end"}, Go(1));
  EXPECT_EQ(NewCalledHook(calls, ModeKeys::kEval), nullptr);
  EXPECT_EQ(NewCalledListener(calls), nullptr);
  TrainSpec spec = Training();
  spec.hooks = {NewCalledHook(calls, ModeKeys::kTrain)};
  ASSERT_TRUE(Train("model", spec).ok());
  EXPECT_THAT(Asked(), ElementsAre("train.end 57"));
}

TEST_F(HookCallsTest, AnAnswerStopsTheTraining) {
  const auto calls =
      Calls({"train.after_run"}, "{\"stop\":false}\n{}\n{\"stop\": true}\n{\"stop\":true}\n");
  TrainSpec spec = Training();
  spec.hooks = {NewCalledHook(calls, ModeKeys::kTrain)};
  const auto result = Train("model", spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->step, 3);
  EXPECT_THAT(result->checkpoint, HasSubstr("model.ckpt-3"));
}

TEST_F(HookCallsTest, AListenersAnswerStopsTheTrainingAtItsCheckpoint) {
  const auto calls = Calls({"save.after"}, "{}\n{\"stop\": true}\n");
  TrainSpec spec = Training();
  spec.saving_listeners = {NewCalledListener(calls)};
  RunConfig config = Config("model");
  config.save_checkpoints_steps = 5;
  const auto result = Train(config, spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->step, 5);
}

// When the parent process is gone, the training stops and saves.
TEST_F(HookCallsTest, TheEndOfTheAnswersStopsTheTraining) {
  const auto calls = Calls({"train.before_run", "train.after_run", "train.end"}, Go(4));
  TrainSpec spec = Training();
  spec.hooks = {NewCalledHook(calls, ModeKeys::kTrain)};
  const auto result = Train("model", spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->step, 2);
  EXPECT_THAT(result->checkpoint, HasSubstr("model.ckpt-2"));
  EXPECT_EQ(Asked().back(), "train.before_run 2");
}

TEST_F(HookCallsTest, AnErrorNamesTheCallAndSkipsEnd) {
  const auto calls =
      Calls({"train.after_run", "train.end"}, "{}\n{\"error\": \"KeyError: 'x'\"}\n{}\n");
  TrainSpec spec = Training();
  spec.hooks = {NewCalledHook(calls, ModeKeys::kTrain)};
  const auto result = Train("model", spec);
  EXPECT_EQ(ToStd(result.status().message()), "train.after_run at step 2: KeyError: 'x'");
  EXPECT_THAT(Asked(), ElementsAre("train.after_run 1", "train.after_run 2"));
}

TEST_F(HookCallsTest, AnInvalidAnswerIsAnError) {
  for (const std::string& answer : {std::string("yes\n"), std::string("[]\n"),
                                    std::string(100, '[') + "\n", std::string(2 << 20, ' ')}) {
    std::FILE* const answers = std::tmpfile();
    ASSERT_EQ(std::fwrite(answer.data(), 1, answer.size(), answers), answer.size());
    std::rewind(answers);
    const auto calls = HookCalls::Create({"eval.end"}, out_, fileno(answers));
    const auto stop = (*calls)->Call("eval.end", 7);
    EXPECT_THAT(ToStd(stop.status().message()), HasSubstr("eval.end at step 7: "));
    EXPECT_TRUE(absl::IsInvalidArgument(stop.status())) << stop.status();
    std::fclose(answers);
  }
}

TEST_F(HookCallsTest, EvaluationsAndPredictionsPassTheStepOfTheCheckpoint) {
  ASSERT_TRUE(Train("model", Training()).ok());
  const auto calls =
      Calls({"eval.begin", "eval.create", "eval.after_run", "eval.end", "predict.begin",
             "predict.create", "predict.before_run", "predict.after_run", "predict.end"},
            Go(5) + "{}\n{}\n{}\n{\"stop\": true}\n" + Go(5));
  EvalSpec eval = Evaluation();
  eval.input.reader.batch_size = 100;
  eval.steps = 2;
  eval.hooks = {NewCalledHook(calls, ModeKeys::kEval)};
  Progress progress(ProgressStyle::kNone, 2, clock_);
  const auto estimator = NewEstimator(kTestSpec, "model");
  ASSERT_TRUE(estimator->Evaluate(eval, progress).ok());
  PredictSpec predict{.input = eval.input, .hooks = {NewCalledHook(calls, ModeKeys::kPredict)}};
  predict.input.with_labels = false;
  size_t asked_before_rows = 0;
  const auto take = [&](const InputBatch&, const engine::Predictions&) {
    asked_before_rows = Asked().size();
    return absl::OkStatus();
  };
  ASSERT_TRUE(estimator->Predict(predict, take, progress).ok());
  EXPECT_THAT(Asked(), ElementsAre("eval.begin 57", "eval.create 57", "eval.after_run 57",
                                   "eval.after_run 57", "eval.end 57", "predict.begin 57",
                                   "predict.create 57", "predict.before_run 57",
                                   "predict.after_run 57", "predict.end 57"));
  EXPECT_EQ(asked_before_rows, 9u);  // stopped after the first batch, which is taken
}

TEST_F(HookCallsTest, RefusesUnknownCallsAndClosedDescriptors) {
  const auto misspelt = HookCalls::Create({"train.befor_run"}, out_, ends_[0]);
  EXPECT_THAT(ToStd(misspelt.status().message()), HasSubstr("did you mean 'train.before_run'?"));
  const auto closed = HookCalls::Create({"train.end"}, out_, 999);
  EXPECT_THAT(ToStd(closed.status().message()), HasSubstr("descriptor 999"));
}

}  // namespace
}  // namespace muster::train
