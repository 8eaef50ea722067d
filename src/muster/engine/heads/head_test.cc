#include "muster/engine/heads/head.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/engine/heads/head_kind.h"

namespace muster::engine {
namespace {

using ::testing::HasSubstr;

TEST(BinaryHeadTest, LossAndGradient) {
  const auto head = NewBinaryHead();
  const std::vector<float> logits = {0, 2, -3, 90, -90, 0.5f}, labels = {0, 1, 1, 0, 0, 1};
  const std::vector<float> weights = {1, 2, 0.5f, 1, 1, 0};
  std::vector<float> gradient(6);
  double loss = 100;
  head->Loss(logits, labels, weights, 0.25f, &loss, gradient);
  double expected = 100;
  for (size_t i = 0; i < 6; ++i) {
    const double x = logits[i], z = labels[i];
    expected += weights[i] * (std::max(x, 0.0) - x * z + std::log1p(std::exp(-std::fabs(x))));
    EXPECT_NEAR(gradient[i], 0.25 * weights[i] * (1 / (1 + std::exp(-x)) - z), 1e-7);
  }
  EXPECT_NEAR(loss, expected, 1e-5);

  double unweighted = 0;
  head->Loss(logits, labels, {}, 1, &unweighted, {});
  EXPECT_NEAR(unweighted,
              std::log(2.0) + std::log1p(std::exp(-2.0)) + 3 + std::log1p(std::exp(-3.0)) + 90 +
                  std::log1p(std::exp(-0.5)),
              1e-5);
}

TEST(BinaryHeadTest, NanLogitsShowInTheLoss) {
  double loss = 0;
  NewBinaryHead()->Loss(std::vector<float>{NAN}, std::vector<float>{1}, {}, 1, &loss, {});
  EXPECT_TRUE(std::isnan(loss));
}

TEST(BinaryHeadTest, LabelsAreZeroOrOne) {
  const auto head = NewBinaryHead();
  EXPECT_TRUE(head->CheckLabels(std::vector<float>{0, 1, 1}).ok());
  for (const float bad : {2.0f, -1.0f, 0.5f, NAN}) {
    const absl::Status status = head->CheckLabels(std::vector<float>{0, 1, bad});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("row 2: label"));
  }
}

// Loss and gradient of a head for one batch; the tests compute the expected loss by the formula in
// double precision.
struct LossResult {
  double loss = 0;
  std::vector<float> gradient;
};
LossResult ComputeLoss(const HeadSpec& spec, const std::vector<float>& logits,
                       const std::vector<float>& labels, const std::vector<float>& weights,
                       float scale = 1) {
  LossResult result;
  result.gradient.resize(logits.size());
  const auto head = NewHead(spec);
  EXPECT_TRUE(head->CheckLabels(labels).ok());
  head->Loss(logits, labels, weights, scale, &result.loss, result.gradient);
  double again = 0;
  head->Loss(logits, labels, weights, scale, &again, {});
  EXPECT_EQ(again, result.loss);
  return result;
}

TEST(MultiClassHeadTest, LossAndGradient) {
  const LossResult result = ComputeLoss({.kind = "multi_class", .classes = 3},
                                        {1, 2, 3, 300, -300, 0}, {2, 1}, {0.5f, 2}, 0.25f);
  const double sum = std::exp(1) + std::exp(2) + std::exp(3);
  EXPECT_NEAR(result.loss, 0.5 * (std::log(sum) - 3) + 2 * 600, 1e-4);
  EXPECT_NEAR(result.gradient[0], 0.25 * 0.5 * std::exp(1) / sum, 1e-7);
  EXPECT_NEAR(result.gradient[2], 0.25 * 0.5 * (std::exp(3) / sum - 1), 1e-7);
  EXPECT_NEAR(result.gradient[3], 0.25 * 2, 1e-7);
  EXPECT_NEAR(result.gradient[4], -0.25 * 2, 1e-7);
}

TEST(MultiLabelHeadTest, IsTheMeanOfBinaryLosses) {
  const std::vector<float> logits = {0.5f, -2, 4, 1, 0, -1}, labels = {1, 0, 0, 1, 1, 0};
  const LossResult result =
      ComputeLoss({.kind = "multi_label", .classes = 3}, logits, labels, {1, 3});
  double expected = 0;
  for (size_t i = 0; i < 6; ++i) {
    const double x = logits[i], z = labels[i], weight = i < 3 ? 1 : 3;
    expected += weight / 3 * (std::max(x, 0.0) - x * z + std::log1p(std::exp(-std::fabs(x))));
    EXPECT_NEAR(result.gradient[i], weight / 3 * (1 / (1 + std::exp(-x)) - z), 1e-7);
  }
  EXPECT_NEAR(result.loss, expected, 1e-5);
}

TEST(RegressionHeadTest, MeanSquared) {
  const LossResult result = ComputeLoss({.kind = "regression", .label_dimension = 2}, {1, 2, 3, 4},
                                        {0, 4, 3, 4.5f}, {2, 1}, 0.5f);
  EXPECT_NEAR(result.loss, 2 * (1 + 4) / 2.0 + 0.25 / 2, 1e-6);
  EXPECT_NEAR(result.gradient[0], 0.5 * 2 * 2 * 1 / 2, 1e-6);
  EXPECT_NEAR(result.gradient[3], 0.5 * 1 * 2 * -0.5 / 2, 1e-6);
}

// tf.estimator's SUM reduction sums over rows, and for a regression over label dimensions too.
TEST(HeadSpecTest, ALossIsAMeanOrASum) {
  EXPECT_EQ(HeadSpec().LossScale(4), 0.25);
  EXPECT_EQ(HeadSpec{.sums = true}.LossScale(4), 1);
  HeadSpec labels{.kind = "multi_label", .classes = 3, .sums = true};
  EXPECT_EQ(labels.LossScale(4), 1);
  HeadSpec pair{.kind = "regression", .label_dimension = 2};
  EXPECT_EQ(NewHead(pair)->LossScale(4), 0.25);
  pair.sums = true;
  EXPECT_EQ(NewHead(pair)->LossScale(4), 2);
}

TEST(RegressionHeadTest, PoissonHasStirlingsTermAboveOne) {
  const HeadSpec poisson{.kind = "regression", .loss = "poisson"};
  const LossResult result = ComputeLoss(poisson, {0.5f, -1, 2}, {0, 1, 7}, {});
  const double stirling = 7 * std::log(7.0) - 7 + 0.5 * std::log(2 * M_PI * 7);
  EXPECT_NEAR(result.loss, std::exp(0.5) + std::exp(-1.0) + 1 + std::exp(2.0) - 2 * 7 + stirling,
              1e-5);
  EXPECT_NEAR(result.gradient[2], std::exp(2.0) - 7, 1e-5);
}

TEST(RegressionHeadTest, LogNormalIsADensityWithMeanExpOfTheLogit) {
  const HeadSpec head{.kind = "regression", .loss = "log_normal"};
  const float logit = 0.75f;
  double mass = 0, mean = 0;
  const double step = 1e-3;
  for (double log_z = -8; log_z < 10; log_z += step) {
    const auto z = static_cast<float>(std::exp(log_z));
    const double density = std::exp(-ComputeLoss(head, {logit}, {z}, {}).loss);
    mass += density * std::exp(log_z) * step;
    mean += density * std::exp(2 * log_z) * step;
  }
  EXPECT_NEAR(mass, 1, 1e-3);
  EXPECT_NEAR(mean, std::exp(0.75), 1e-2);
}

TEST(RegressionHeadTest, LabelsThatALossCannotLearnFromAreRefused) {
  const auto message = [](const char* loss, float label) {
    const auto head = NewHead({.kind = "regression", .loss = loss});
    return std::string(head->CheckLabels(std::vector<float>{1, label}).message());
  };
  EXPECT_EQ(message("mean_squared", -3), "");
  EXPECT_THAT(message("mean_squared", NAN), HasSubstr("row 1: label nan"));
  EXPECT_EQ(message("poisson", 0), "");
  EXPECT_THAT(message("poisson", -1), HasSubstr("is negative"));
  EXPECT_THAT(message("log_normal", 0), HasSubstr("is not above 0"));
  EXPECT_EQ(message("logistic", 0.25f), "");
  EXPECT_THAT(message("logistic", 1.25f), HasSubstr("is not between 0 and 1"));
}

TEST(MultiClassHeadTest, LabelsAreClasses) {
  const auto head = NewHead({.kind = "multi_class", .classes = 3});
  for (const float bad : {3.0f, -1.0f, 1.5f, NAN}) {
    const absl::Status status = head->CheckLabels(std::vector<float>{2, bad});
    EXPECT_THAT(std::string(status.message()), HasSubstr("of 3 classes"));
  }
}

// For every head in the table.
TEST(HeadKindTest, KindsAreFoundByNameAndOtherNamesAreRefused) {
  for (const HeadKind* const kind : HeadKinds()) {
    EXPECT_EQ(FindHeadKind(kind->name()), kind);
    HeadSpec spec{.kind = std::string(kind->name()), .classes = 3, .vector_size = 2};
    EXPECT_TRUE(Validate(spec).ok()) << kind->name();
    EXPECT_EQ(NewHead(spec)->logits_dimension(), spec.logits_dimension());
  }
  EXPECT_EQ(std::string(Validate({.kind = "binari"}).message()),
            "unknown head 'binari' (did you mean 'binary'?)");
  EXPECT_EQ(std::string(Validate({.kind = "regression", .loss = "poison"}).message()),
            "head regression: unknown loss 'poison' (did you mean 'poisson'?)");
}

}  // namespace
}  // namespace muster::engine
