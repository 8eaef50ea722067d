#include "muster/train/loop/hooks/early_stopping.h"

#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using testing::HasSubstr;
using Kind = EarlyStopping::Kind;

std::map<int64_t, Metrics> Losses(const std::vector<double>& losses) {
  std::map<int64_t, Metrics> evaluations;
  for (size_t i = 0; i < losses.size(); ++i) {
    evaluations[static_cast<int64_t>(i + 1) * 10]["loss"] = losses[i];
  }
  return evaluations;
}

TEST(WhyStopTest, NoDecreaseCountsStepsSinceTheBest) {
  const EarlyStopping spec{.kind = Kind::kNoDecrease, .max_steps_without = 20};
  EXPECT_EQ(*WhyStop(spec, {}), std::nullopt);
  EXPECT_EQ(*WhyStop(spec, Losses({5, 4, 4})), std::nullopt);
  EXPECT_EQ(*WhyStop(spec, Losses({5, 4, 3, 4})), std::nullopt);
  const auto why = WhyStop(spec, Losses({5, 4, 4, 4.5}));
  ASSERT_TRUE(why.ok() && why->has_value());
  EXPECT_EQ(**why, "no decrease of metric 'loss' for 20 steps: it was best, 4, at step 20");
}

TEST(WhyStopTest, NoIncreaseCountsStepsSinceTheHighest) {
  const EarlyStopping spec{.kind = Kind::kNoIncrease, .max_steps_without = 20};
  EXPECT_EQ(*WhyStop(spec, Losses({1, 2, 3, 4})), std::nullopt);
  EXPECT_TRUE(WhyStop(spec, Losses({3, 2, 1}))->has_value());
}

TEST(WhyStopTest, ThresholdsAreStrict) {
  EarlyStopping spec{.kind = Kind::kHigher, .threshold = 3};
  EXPECT_EQ(*WhyStop(spec, Losses({1, 3})), std::nullopt);
  EXPECT_EQ(**WhyStop(spec, Losses({1, 3.5})), "at step 20 metric 'loss' is 3.5, higher than 3");
  spec.kind = Kind::kLower;
  EXPECT_EQ(*WhyStop(spec, Losses({3})), std::nullopt);
  EXPECT_EQ(**WhyStop(spec, Losses({1})), "at step 10 metric 'loss' is 1, lower than 3");
}

TEST(WhyStopTest, EarlyEvaluationsDoNotCount) {
  EarlyStopping spec{.kind = Kind::kNoDecrease, .max_steps_without = 10, .min_steps = 20};
  EXPECT_EQ(*WhyStop(spec, Losses({1, 3, 2})), std::nullopt);
  spec.min_steps = 0;
  EXPECT_TRUE(WhyStop(spec, Losses({1, 3, 2}))->has_value());
}

TEST(WhyStopTest, AMissingMetricIsNamed) {
  const auto why = WhyStop({.metric = "los", .max_steps_without = 1}, Losses({1}));
  EXPECT_TRUE(absl::IsInvalidArgument(why.status()));
  EXPECT_THAT(std::string(why.status().message()), HasSubstr("'los' (did you mean 'loss'?)"));
}

TEST(ParseEarlyStoppingTest, ParsesTheFourKinds) {
  const auto a = ParseEarlyStopping("auc:no_increase:2000");
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_EQ(*a,
            (EarlyStopping{.kind = Kind::kNoIncrease, .metric = "auc", .max_steps_without = 2000}));
  EXPECT_EQ(ParseEarlyStopping("loss:no_decrease:5")->kind, Kind::kNoDecrease);
  EXPECT_EQ(ParseEarlyStopping("label/mean:higher:0.5")->threshold, 0.5);
  EXPECT_EQ(ParseEarlyStopping("a:b:lower:-1")->metric, "a:b");
  const auto late = ParseEarlyStopping("a:b:lower:-1:min_steps=30");
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ(*late, (EarlyStopping{
                       .kind = Kind::kLower, .metric = "a:b", .threshold = -1, .min_steps = 30}));
}

TEST(ParseEarlyStoppingTest, RefusesOtherText) {
  const struct {
    const char *text, *message;
  } cases[] = {{"auc", "it must have three parts"},
               {"auc:higher", "it must have three parts"},
               {":higher:1", "it names no metric"},
               {"auc:hihger:1", "unknown direction 'hihger' (did you mean 'higher'?)"},
               {"auc:no_increase:0", "'0' is not a number of steps above 0"},
               {"auc:no_increase:1.5", "'1.5' is not a number of steps"},
               {"auc:lower:x", "'x' is not a number"},
               {"auc:lower:1:min_steps=x", "'x' is not a number of steps"},
               {"min_steps=1", "it must have three parts"}};
  for (const auto& test : cases) {
    const auto spec = ParseEarlyStopping(test.text);
    EXPECT_TRUE(absl::IsInvalidArgument(spec.status())) << test.text;
    EXPECT_THAT(std::string(spec.status().message()), HasSubstr(test.message));
  }
}

class EarlyStoppingTest : public TrainingTest {
 protected:
  void WriteEvaluation(int64_t step, float loss) {
    formats::EventWriter events(*files_, "model/eval", clock_);
    ASSERT_TRUE(events.WriteScalars(step, {{"loss", loss}}).ok());
    ASSERT_TRUE(events.Close().ok());
  }
};

TEST_F(EarlyStoppingTest, ReadsTheEventFilesOfEarlierEvaluations) {
  WriteEvaluation(1, 0.5);
  WriteEvaluation(3, 0.6);
  TrainSpec spec = Training();
  spec.hooks = {NewEarlyStopping({.max_steps_without = 2})};
  const auto result = Train("model", spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->step, 0);
  EXPECT_THAT(result->stop_reason, HasSubstr("no decrease of metric 'loss' for 2 steps"));
}

// An evaluator, as from another process, writes while this one trains.
TEST_F(EarlyStoppingTest, ReadsTheFolderAgainAtItsInterval) {
  class Evaluator : public Hook {
   public:
    explicit Evaluator(std::function<void(int64_t)> write) : write_(std::move(write)) {}
    absl::Status AfterRun(Session& session, const StepValues&) override {
      if (session.step % 4 == 0) write_(session.step);
      return absl::OkStatus();
    }
    std::function<void(int64_t)> write_;
  };
  TrainSpec spec = Training();
  spec.hooks = {std::make_shared<Evaluator>([&](int64_t step) { WriteEvaluation(step, 1); }),
                NewEarlyStopping({.max_steps_without = 8, .run_every_steps = 5})};
  const auto result = Train("model", spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->step, 15);  // the look at 10 sees 4 and 8, that at 15 sees 12
}

}  // namespace
}  // namespace muster::train
