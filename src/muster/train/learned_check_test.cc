#include "muster/train/learned_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/io/memory_file_system.h"

namespace muster::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

model::ModelSpec Spec(const std::string& head = "binary") {
  const auto files = io::NewMemoryFileSystem();
  const auto spec = model::ParseModelSpec(*files,
                                          StrCat(R"(
inputs: {x: float, gain: float, y: float}
label: y
head: )",
                                                 head, R"(
columns: {x: {numeric: x, mean: 3, stddev: 2}, gain: {numeric: gain}}
model:
  type: wide_deep
  linear: {columns: [x]}
  dnn: {columns: [x, gain], hidden_units: [4]}
)"),
                                          "spec.yaml");
  EXPECT_TRUE(spec.ok()) << spec.status();
  return *spec;
}

std::string Describe(double label, double prediction, double rows) {
  return DescribeUnlearned(Spec(), {{"label/mean", label}, {"prediction/mean", prediction}}, rows);
}

TEST(LearnedCheckTest, AMeanThatIsFarOffIsReportedWithLinesForTheModelFile) {
  EXPECT_THAT(Describe(0.24, 0.61, 10'240),
              AllOf(HasSubstr("predictions is 0.61 and that of the labels 0.24 (10240 rows)"),
                    HasSubstr("gain: {numeric: \"gain\", normalize: auto} in columns"),
                    HasSubstr("optimizer: {ftrl: {learning_rate: 0.1}} in model.linear"),
                    HasSubstr("optimizer: {adagrad: {learning_rate: 0.05}} in model.dnn")));
}

TEST(LearnedCheckTest, AColumnThatReadsTheLabelIsNamed) {
  EXPECT_EQ(DescribeLabelAsFeature(Spec()), "");
  model::ModelSpec leaks = Spec();
  leaks.features.columns[1].input = "y";
  EXPECT_EQ(DescribeLabelAsFeature(leaks),
            "column 'gain' reads the label 'y': the model learns to repeat it; take the column out "
            "of the model file");
  model::ModelSpec crosses = Spec();
  crosses.features.columns[0].kind = features::ColumnKind::kCross;
  crosses.features.columns[0].keys = {"gain", "y"};
  EXPECT_THAT(DescribeLabelAsFeature(crosses), HasSubstr("column 'x' reads the label 'y'"));
}

// No sample is evaluated at the end of a training that has no rule.
TEST(LearnedCheckTest, ModelsByKerasAndOtherHeadsHaveNoRule) {
  EXPECT_TRUE(HasLearnedRule(Spec()));
  EXPECT_TRUE(HasLearnedRule(Spec("regression")));
  EXPECT_FALSE(HasLearnedRule(Spec("{multi_class: {classes: 3}}")));
  model::ModelSpec exported = Spec();
  exported.exported = std::make_shared<const engine::tensorflow::KerasExport>();
  EXPECT_FALSE(HasLearnedRule(exported));
}

TEST(LearnedCheckTest, AllPartsOfAClickModelAreChecked) {
  const auto files = io::NewMemoryFileSystem();
  const auto describe = [&](std::string_view model) {
    const auto spec = model::ParseModelSpec(*files,
                                            StrCat(R"(
inputs: {user: string, gain: float, age: float, y: int}
label: y
columns:
  user: {hash: user, buckets: 10}
  vector: {embedding: user, dimension: 2}
  gain: {numeric: gain}
  age: {numeric: age}
model:
)",
                                                   model),
                                            "spec.yaml");
    EXPECT_TRUE(spec.ok()) << spec.status();
    return DescribeUnlearned(*spec, {{"label/mean", 0.24}, {"prediction/mean", 0.61}}, 10'240);
  };
  const std::string gain = "gain: {numeric: \"gain\", normalize: auto} in columns";
  EXPECT_THAT(describe(R"(
  type: fm
  linear: {columns: [user]}
  fm: {columns: [vector, gain], optimizer: {adagrad: {learning_rate: 0.001}}})"),
              AllOf(HasSubstr(gain), HasSubstr("{learning_rate: 0.05}} in model.fm (it is 0.001)"),
                    testing::Not(HasSubstr("age"))));
  EXPECT_THAT(describe(R"(
  type: dcn
  dnn: {columns: [vector, gain], hidden_units: [4], optimizer: {adam: {learning_rate: 1e-5}}})"),
              AllOf(HasSubstr(gain), HasSubstr("{learning_rate: 0.001}} in model.dnn")));
}

TEST(LearnedCheckTest, AnInsignificantDifferenceIsNotReported) {
  EXPECT_THAT(Describe(0.24, 0.25, 10'240), IsEmpty());
  EXPECT_THAT(Describe(0.24, 0.29, 10'000'000), IsEmpty()) << "significant, but small";
  EXPECT_THAT(Describe(0.24, 0.31, 500), IsEmpty()) << "large, but by chance";
  EXPECT_THAT(Describe(0.24, 0.31, 10'000), HasSubstr("0.31"));
  // A quarter of the rarer class, whichever that is.
  EXPECT_THAT(Describe(0.01, 0.012, 1'000'000), IsEmpty());
  EXPECT_THAT(Describe(0.01, 0.014, 1'000'000), HasSubstr("0.014"));
  EXPECT_THAT(Describe(0.99, 0.986, 1'000'000), HasSubstr("0.986"));
}

TEST(LearnedCheckTest, ARegressionIsJudgedByItsSquaredError) {
  const auto describe = [](double prediction, double squared_error) {
    return DescribeUnlearned(Spec("regression"),
                             {{"label/mean", 1950},
                              {"mean_squared_error", squared_error},
                              {"prediction/mean", prediction}},
                             1000);
  };
  EXPECT_THAT(describe(12, 1.0 * 1938 * 1938 + 100), HasSubstr("has not learned"));
  EXPECT_THAT(describe(1944, 100), HasSubstr("has not learned")) << "6 of 10";
  EXPECT_THAT(describe(1946, 100), IsEmpty());
}

TEST(LearnedCheckTest, OtherHeadsAreNotChecked) {
  EXPECT_THAT(DescribeUnlearned(Spec("{multi_class: 3}"), {{"accuracy", 0.1}}, 10'000), IsEmpty());
}

}  // namespace
}  // namespace muster::train
