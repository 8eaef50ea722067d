#include "muster/engine/predictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace muster::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Names(const Predictions& predictions) {
  std::vector<std::string> names;
  for (const PredictionTensor& tensor : predictions.tensors) names.push_back(tensor.name);
  return names;
}

TEST(PredictionsTest, Binary) {
  const Predictor predictor({}, {"no", "yes"});
  Predictions out;
  predictor.Predict(std::vector<float>{-1, 0, 2}, &out);
  EXPECT_EQ(out.rows, 3);
  EXPECT_THAT(Names(out), ElementsAre("logits", "logistic", "probabilities", "class_ids", "classes",
                                      "all_class_ids", "all_classes"));
  EXPECT_FLOAT_EQ(out.Find("logistic")->floats[2], 1 / (1 + std::exp(-2.0f)));
  EXPECT_EQ(out.Find("probabilities")->width, 2);
  EXPECT_FLOAT_EQ(out.Find("probabilities")->floats[5], out.Find("logistic")->floats[2]);
  EXPECT_THAT(out.Find("class_ids")->ints, ElementsAre(0, 0, 1));  // a tie gives the first class
  EXPECT_THAT(out.Find("classes")->strings, ElementsAre("no", "no", "yes"));
  EXPECT_TRUE(out.Find("all_classes")->same_in_all_rows);
  EXPECT_EQ(out.Find("all_classes")->begin(2), 0u);
  EXPECT_THAT(out.Find("all_classes")->strings, ElementsAre("no", "yes"));
  EXPECT_EQ(out.Find("nothing"), nullptr);
}

TEST(PredictionsTest, MultiClass) {
  const Predictor predictor({.kind = "multi_class", .classes = 3}, {});
  Predictions out;
  predictor.Predict(std::vector<float>{1, 1, 0, -500, 0, 500}, &out);
  EXPECT_EQ(out.rows, 2);
  const auto& probabilities = out.Find("probabilities")->floats;
  EXPECT_FLOAT_EQ(probabilities[0], std::exp(1.0f) / (2 * std::exp(1.0f) + 1));
  EXPECT_FLOAT_EQ(probabilities[5], 1);
  EXPECT_THAT(out.Find("class_ids")->ints, ElementsAre(0, 2));
  EXPECT_THAT(out.Find("classes")->strings, ElementsAre("0", "2"));
  EXPECT_THAT(out.Find("all_class_ids")->ints, ElementsAre(0, 1, 2));
}

TEST(PredictionsTest, MultiLabelAndRegression) {
  Predictions out;
  const Predictor labels({.kind = "multi_label", .classes = 2}, {"a", "b"});
  labels.Predict(std::vector<float>{0, 1, 2, 3}, &out);
  EXPECT_THAT(Names(out), ElementsAre("logits", "probabilities", "classes"));
  EXPECT_FLOAT_EQ(out.Find("probabilities")->floats[3], Sigmoid(3));
  EXPECT_THAT(out.Find("classes")->strings, ElementsAre("a", "b"));

  // The same Predictions object is reused for another head.
  const Predictor squared({.kind = "regression", .label_dimension = 2}, {});
  squared.Predict(std::vector<float>{0, 1, 2, 3}, &out);
  EXPECT_THAT(Names(out), ElementsAre("predictions"));
  EXPECT_THAT(out.Find("predictions")->floats, ElementsAre(0, 1, 2, 3));
  const Predictor poisson({.kind = "regression", .loss = "poisson"}, {});
  poisson.Predict(std::vector<float>{0, 1}, &out);
  EXPECT_THAT(Names(out), ElementsAre("predictions", "logits"));
  EXPECT_FLOAT_EQ(out.Find("predictions")->floats[1], std::exp(1.0f));
  const Predictor logistic({.kind = "regression", .loss = "logistic"}, {});
  logistic.Predict(std::vector<float>{0, 1}, &out);
  EXPECT_FLOAT_EQ(out.Find("predictions")->floats[1], Sigmoid(1));
}

TEST(PredictionsTest, WithoutRowsThereAreNamesAndWidths) {
  const Predictor predictor({.kind = "multi_class", .classes = 3}, {});
  Predictions out;
  predictor.Predict({}, &out);
  EXPECT_EQ(out.rows, 0);
  EXPECT_EQ(out.Find("probabilities")->width, 3);
  EXPECT_TRUE(out.Find("probabilities")->floats.empty());
}

TEST(HeadSpecTest, Dimensions) {
  EXPECT_EQ(HeadSpec().logits_dimension(), 1);
  const HeadSpec classes{.kind = "multi_class", .classes = 5};
  EXPECT_EQ(classes.logits_dimension(), 5);
  EXPECT_EQ(classes.labels_dimension(), 1);
  const HeadSpec labels{.kind = "multi_label", .classes = 5};
  EXPECT_EQ(labels.labels_dimension(), 5);
}

TEST(HeadSpecTest, Validate) {
  EXPECT_TRUE(Validate({}).ok());
  EXPECT_THAT(std::string(Validate({.kind = "multi_class", .classes = 2}).message()),
              HasSubstr("write 'head: binary'"));
  EXPECT_FALSE(Validate({.kind = "multi_label", .classes = 1}).ok());
  EXPECT_FALSE(Validate({.kind = "regression", .label_dimension = 0}).ok());
}

}  // namespace
}  // namespace muster::engine
