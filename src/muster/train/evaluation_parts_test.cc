// An evaluation in parts gives the same as an evaluation of all data at once.
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using testing::HasSubstr;

class EvaluationPartsTest : public TrainingTest {
 protected:
  EvaluationPartsTest() { EXPECT_TRUE(Train("model", Training()).ok()); }

  static EvalSpec Spec() {
    EvalSpec spec = Evaluation();
    spec.input.reader.batch_size = 16;
    spec.steps.reset();
    return spec;
  }
  absl::StatusOr<metrics::State> Part(int index, int count, EvalSpec spec = Spec()) {
    spec.input.source.shard = {
        .index = index, .count = count, .by = data::ShardBy::kRecord, .multiple = 16};
    Progress progress(ProgressStyle::kNone, 2, clock_);
    return NewEstimator(kTestSpec, "model")->EvaluatePart(spec, progress);
  }
  absl::StatusOr<EvalResult> Merge(std::vector<metrics::State> states, EvalSpec spec = Spec()) {
    size_t next = 0;
    Progress progress(ProgressStyle::kNone, 2, clock_);
    return NewEstimator(kTestSpec, "model")
        ->MergeEvaluation(
            spec,
            [&]() -> absl::StatusOr<std::optional<metrics::State>> {
              if (next == states.size()) return std::nullopt;
              return states[next++];
            },
            progress);
  }
};

TEST_F(EvaluationPartsTest, AnyNumberOfPartsGivesTheSameResult) {
  Progress progress(ProgressStyle::kNone, 2, clock_);
  const auto whole = NewEstimator(kTestSpec, "model")->Evaluate(Spec(), progress);
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const int count : {1, 2, 7, 500}) {  // there are 300 records
    std::vector<metrics::State> states;
    for (int i = 0; i < count; ++i) {
      auto state = Part(i, count);
      ASSERT_TRUE(state.ok()) << state.status();
      states.push_back(*std::move(state));
    }
    EvalSpec spec = Spec();
    spec.name = StrCat("by", count);
    const auto merged = Merge(std::move(states), spec);
    ASSERT_TRUE(merged.ok()) << merged.status();
    EXPECT_EQ(merged->examples, 300u);
    EXPECT_EQ(merged->step, whole->step);
    ASSERT_EQ(merged->metrics.size(), whole->metrics.size());
    for (size_t i = 0; i < whole->metrics.size(); ++i) {
      const auto& [name, value] = whole->metrics[i];
      EXPECT_EQ(merged->metrics[i].first, name);
      EXPECT_NEAR(merged->metrics[i].second, value, 1e-12 * std::fabs(value)) << name;
      if (name.starts_with("auc")) {
        EXPECT_EQ(merged->metrics[i].second, value) << name;
      }
    }
    EXPECT_EQ(Events(EvalFolder("model", spec.name)).size(), whole->metrics.size() - 1);
  }
}

TEST_F(EvaluationPartsTest, PartsOfDifferentStepsAreNotMixed) {
  metrics::State first = Part(0, 2).value(), second = Part(1, 2).value();
  ++second.step;
  const absl::Status status = Merge({first, second}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(ToStd(status.message()), HasSubstr("step 58"));
}

TEST_F(EvaluationPartsTest, WithoutRowsThereIsNoResult) {
  const absl::Status status = Merge({}).status();
  EXPECT_THAT(ToStd(status.message()), HasSubstr("no rows"));
  EXPECT_FALSE(files_->Stat("model/eval").ok());
}

}  // namespace
}  // namespace muster::train
