#include "muster/model/spec/model_spec_test_util.h"

namespace muster::model {
namespace {

using testing::HasSubstr;

class ModelSpecHeadTest : public ModelSpecTest {
 protected:
  using LabelForm = features::LabelSpec::Form;

  // Expects `head` for kSmallSpec with this label and rest, as parsed and after printing and
  // parsing again.
  void ExpectHead(std::string_view label, std::string_view rest, const engine::HeadSpec& head,
                  LabelForm form, int width) {
    SCOPED_TRACE(rest);
    std::string yaml(kSmallSpec);
    yaml.replace(yaml.find("  y: int\nlabel: y\n"), 18, label);
    const auto spec = Parse(StrCat(yaml, rest));
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->head, head);
    EXPECT_EQ(spec->features.label.form, form);
    EXPECT_EQ(spec->features.label.width, width);
    ExpectPrintsBack(*spec);
  }
};

TEST_F(ModelSpecHeadTest, ReadsAndPrintsHeads) {
  const std::string_view one = "  y: int\nlabel: y\n";
  const std::string_view words = "  y: string\nlabel: {input: y, words: [a, b, c]}\n";
  const std::string_view list = "  y: {type: float, list: true}\nlabel: y\n";
  const std::string_view set =
      "  y: {type: string, list: true}\nlabel: {input: y, words: [a, b, c]}\n";
  const std::string_view ids = "  y: {type: int, list: true}\nlabel: {input: y, ids: true}\n";
  ExpectHead(one, "", {}, LabelForm::kOne, 1);
  ExpectHead(one, "head: binary\n", {}, LabelForm::kOne, 1);
  ExpectHead(one, "loss_reduction: sum_over_batch_size\n", {}, LabelForm::kOne, 1);
  ExpectHead(one, "head: binary\nloss_reduction: sum\n", {.sums = true}, LabelForm::kOne, 1);
  const engine::HeadSpec three{.kind = "multi_class", .classes = 3};
  ExpectHead(one, "head: {multi_class: {classes: 3}}\n", three, LabelForm::kOne, 1);
  ExpectHead(one, "head: {multi_class: 3}\n", three, LabelForm::kOne, 1);
  ExpectHead(words, "head: multi_class\n", three, LabelForm::kOne, 1);
  const engine::HeadSpec labels{.kind = "multi_label", .classes = 3};
  ExpectHead(list, "head: {multi_label: {classes: 3}}\n", labels, LabelForm::kVector, 3);
  ExpectHead(set, "head: multi_label\n", labels, LabelForm::kSet, 3);
  ExpectHead(ids, "head: {multi_label: 3}\n", labels, LabelForm::kSet, 3);
  const engine::HeadSpec regression{.kind = "regression"};
  ExpectHead(one, "head: regression\n", regression, LabelForm::kOne, 1);
  ExpectHead(list, "head: regression\n", regression, LabelForm::kVector, 1);
  ExpectHead(one, "head: {regression: poisson}\n", {.kind = "regression", .loss = "poisson"},
             LabelForm::kOne, 1);
  ExpectHead(list, "head: {regression: {loss: log_normal, label_dimension: 2}}\n",
             {.kind = "regression", .loss = "log_normal", .label_dimension = 2}, LabelForm::kVector,
             2);
}

TEST_F(ModelSpecHeadTest, RefusesInvalidHeads) {
  const auto with_head = [&](const std::string& head) {
    return ErrorAfter("model:", StrCat("head: ", head, "\nmodel:"));
  };
  EXPECT_THAT(with_head("binry"), HasSubstr("unknown head 'binry' (did you mean 'binary'?)"));
  EXPECT_THAT(with_head("{binary: 3}"), HasSubstr("has no options"));
  EXPECT_THAT(with_head("{}"), HasSubstr("must have one entry"));
  EXPECT_THAT(with_head("binary\nloss_reduction: sun"), HasSubstr("did you mean 'sum'?"));
  EXPECT_THAT(with_head("multi_class"), HasSubstr("needs its number of classes"));
  EXPECT_THAT(with_head("{multi_class: 2}"), HasSubstr("it must be 3 to"));
  EXPECT_THAT(with_head("{multi_class: {clases: 3}}"), HasSubstr("did you mean 'classes'?"));
  EXPECT_THAT(with_head("{multi_label: 3}"), HasSubstr("needs to be a list"));
  EXPECT_THAT(with_head("{regression: mean_square}"), HasSubstr("did you mean 'mean_squared'?"));
  EXPECT_THAT(with_head("{regression: {label_dimension: 2}}"), HasSubstr("needs to be a list"));
  EXPECT_THAT(ErrorAfter("label: y", "label: {input: y, words: [1, 2]}\nhead: regression"),
              HasSubstr("learns numbers, not words"));
  EXPECT_THAT(ErrorAfter("label: y", "label: {input: y, words: [1, 2, 3]}\nhead: {multi_class: 4}"),
              HasSubstr("needs 4 words, but there are 3"));
  EXPECT_THAT(ErrorAfter("label: y", "label: {input: y, ids: true}"),
              HasSubstr("'ids' can only be used with 'head: multi_label'"));
  EXPECT_THAT(ErrorAfter("label: y", "label: y\nweight: z"),
              HasSubstr("weight 'z': unknown input"));
}

TEST_F(ModelSpecHeadTest, ReadsWeightAndMetrics) {
  std::string yaml(kSmallSpec);
  yaml += "weight: x\nmetrics: {thresholds: [0.3, 0.75], calibration_buckets: 10}\n";
  auto spec = Parse(yaml);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->features.weight, "x");
  EXPECT_THAT(spec->metrics.thresholds, testing::ElementsAre(0.3, 0.75));
  EXPECT_EQ(spec->metrics.calibration_buckets, 10);
  ExpectPrintsBack(*spec);
  ModelSpec other = *spec;
  other.metrics = {};
  EXPECT_EQ(DescribeDifference(*spec, other), "");
  other.features.weight = "";
  EXPECT_THAT(DescribeDifference(*spec, other), HasSubstr("weight"));

  const auto with_metrics = [&](const std::string& metrics) {
    return ErrorAfter("model:", StrCat("metrics: ", metrics, "\nmodel:"));
  };
  EXPECT_THAT(with_metrics("{top_k: [2]}"), HasSubstr("top_k: a binary head has none"));
  EXPECT_THAT(with_metrics("{per_class: true}"),
              HasSubstr("it is for multi_class and multi_label"));
  EXPECT_THAT(with_metrics("{thresholds: [1]}"), HasSubstr("1 is not between 0 and 1"));
  EXPECT_THAT(with_metrics("{thresholds: [a]}"), HasSubstr("'a' is not a number"));
  EXPECT_THAT(with_metrics("{treshold: [0.5]}"), HasSubstr("did you mean 'thresholds'?"));
  EXPECT_THAT(with_metrics("{top_k: [9]}\nhead: {multi_class: 3}"),
              HasSubstr("9 is not 1 to the number of classes, 3"));
}

TEST_F(ModelSpecHeadTest, ReadsABaseline) {
  std::string yaml(kSmallSpec);
  yaml.resize(yaml.find("columns:"));
  const auto spec = Parse(StrCat(yaml, "model: {type: baseline}\n"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_TRUE(spec->baseline.has_value());
  EXPECT_EQ(spec->baseline->optimizer.learning_rate, 0.3);
  EXPECT_FALSE(spec->linear.has_value());
  ExpectPrintsBack(*spec);
  EXPECT_THAT(ErrorAfter("type: linear", "type: baseline"), HasSubstr("no 'linear' part"));
}

}  // namespace
}  // namespace muster::model
