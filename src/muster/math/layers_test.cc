#include "muster/math/layers.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/random.h"

namespace muster::math {
namespace {

class LayersTest : public testing::TestWithParam<const Kernels*> {
 protected:
  std::vector<float> Random(int n) {
    std::vector<float> x(static_cast<size_t>(n));
    for (float& v : x) v = static_cast<float>(random_.Normal());
    return x;
  }
  RandomStream random_{20250101, RandomPurpose::kSampleData, 8};
};

INSTANTIATE_TEST_SUITE_P(Isa, LayersTest,
                         testing::ValuesIn(SupportedKernels().begin(), SupportedKernels().end()),
                         [](const auto& isa) { return std::string(isa.param->name); });

TEST_P(LayersTest, DropoutFollowsTheRandomStream) {
  RandomStream stream(42, RandomPurpose::kDropout, 0x123456789abcdef0, 3);
  const RandomPlace place{{stream.key()[0], stream.key()[1]},
                          {stream.words()[0], stream.words()[1]}};
  for (const uint64_t first : {uint64_t{0}, uint64_t{1}, uint64_t{7}, uint64_t{1000},
                               (uint64_t{1} << 34) - 9, (uint64_t{5} << 40) + 2}) {
    for (const size_t n : {0, 1, 3, 4, 61, 64, 100, 257, 1000}) {
      for (const uint32_t below : {0u, 1u << 30, 0xffffffffu}) {
        std::vector<float> factors(n + 1, -1), expected(n + 1, -1);
        stream.Seek(first);
        for (size_t i = 0; i < n; ++i) expected[i] = stream.Next32() >= below ? 1.25f : 0.0f;
        GetParam()->dropout_factors(place, first, n, below, 1.25f, factors.data());
        ASSERT_EQ(factors, expected) << first << " " << n << " " << below;
      }
    }
  }
}

TEST_P(LayersTest, Products) {
  const auto x = Random(37), by = Random(37);
  auto product = Random(37), sum = product;
  const auto before = sum;
  GetParam()->multiply(x.data(), by.data(), product.data(), 37);
  GetParam()->multiply_add_to(x.data(), by.data(), sum.data(), 37);
  for (size_t i = 0; i < 37; ++i) {
    EXPECT_EQ(product[i], x[i] * by[i]);
    EXPECT_EQ(sum[i], before[i] + x[i] * by[i]);
  }
}

// Compares with the formulas, to the bit.
TEST_P(LayersTest, BatchNorm) {
  const Kernels& kernels = *GetParam();
  constexpr int kRows = 9, kLd = 110;
  const auto x = Random(kRows * kLd), dy = Random(kRows * kLd);
  const auto mean = Random(kLd), scale = Random(kLd), gamma = Random(kLd), beta = Random(kLd);
  for (const int cols : {1, 5, 16, 33, 100}) {
    const MatrixView view{x.data(), kLd, kRows, cols};
    const Normalization by{mean.data(), scale.data(), gamma.data(), beta.data()};
    const auto n = static_cast<size_t>(cols);
    std::vector<double> sums(n, 0.5), squares(n, 0.5), dy_sums(n, 0.5), dy_xhat_sums(n, 0.5);
    std::vector<float> y(kRows * kLd), dx(kRows * kLd), added(kRows * kLd, 2);
    kernels.add_columns(view, sums.data());
    kernels.add_squared_distances(view, sums.data(), squares.data());
    kernels.normalize(view, by, y.data(), kLd);
    kernels.add_normalization_sums(view, dy.data(), kLd, by, dy_sums.data(), dy_xhat_sums.data());
    for (const bool add : {false, true}) {
      kernels.normalization_gradient(view, dy.data(), kLd, by, dy_sums.data(), dy_xhat_sums.data(),
                                     add, add ? added.data() : dx.data(), kLd);
    }
    for (size_t j = 0; j < n; ++j) {
      double sum = 0.5, square = 0.5, dy_sum = 0.5, dy_xhat_sum = 0.5;
      for (size_t i = j; i < x.size(); i += kLd) {
        const float xhat = (x[i] - mean[j]) * scale[j];
        sum += x[i];
        square += (x[i] - sums[j]) * (x[i] - sums[j]);
        dy_sum += dy[i];
        dy_xhat_sum += double{dy[i]} * xhat;
        EXPECT_EQ(y[i], xhat * gamma[j] + beta[j]);
        const auto centred = static_cast<float>(dy[i] - dy_sums[j] - xhat * dy_xhat_sums[j]);
        EXPECT_EQ(dx[i], gamma[j] * scale[j] * centred);
        EXPECT_EQ(added[i], 2 + dx[i]);
      }
      EXPECT_EQ(sums[j], sum);
      EXPECT_EQ(squares[j], square);
      EXPECT_EQ(dy_sums[j], dy_sum);
      EXPECT_EQ(dy_xhat_sums[j], dy_xhat_sum);
    }
    for (size_t i = n; i < static_cast<size_t>(kLd); ++i)
      EXPECT_EQ(added[i], 2) << "the layer wrote after a row's end";
  }
}

}  // namespace
}  // namespace muster::math
