#include "muster/engine/native/head.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::engine::native {
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

}  // namespace
}  // namespace muster::engine::native
