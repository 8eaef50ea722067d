#include "muster/math/gemm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/random.h"

namespace muster::math {
namespace {

using ::testing::ElementsAreArray;

struct Shape {
  int m, n, k;
};

// Rounds to the nearest bfloat16, ties to even.
float RoundedToBf16(float x) {
  auto bits = std::bit_cast<uint32_t>(x);
  bits += 0x7fff + (bits >> 16 & 1);
  return std::bit_cast<float>(bits & 0xffff0000);
}

class GemmTest : public testing::TestWithParam<const Kernels*> {
 protected:
  virtual void Multiply(const GemmCall& call) { Gemm(*GetParam(), call, workspace_); }
  // Returns the value that an operand is rounded to.
  virtual float Rounded(float x) const { return x; }

  std::vector<float> Random(int64_t n) {
    std::vector<float> x(static_cast<size_t>(n));
    for (float& v : x) v = static_cast<float>(random_.Normal());
    return x;
  }
  int Below(int n) { return static_cast<int>(random_.Below(static_cast<uint64_t>(n))); }

  // Compares a product, in every combination of layouts and epilogues, with three loops over
  // doubles.
  void Check(Shape shape, unsigned variant) {
    SCOPED_TRACE(testing::Message()
                 << shape.m << " x " << shape.n << " x " << shape.k << " variant " << variant);
    const bool a_transposed = variant & 1, b_transposed = variant & 2;
    const bool accumulate = variant & 4, relu = variant & 8;
    const bool with_bias = variant & 16, with_mask = variant & 32;
    const int a_rows = a_transposed ? shape.k : shape.m, a_cols = shape.m + shape.k - a_rows;
    const int b_rows = b_transposed ? shape.n : shape.k, b_cols = shape.n + shape.k - b_rows;
    const int lda = a_cols + Below(3), ldb = b_cols + Below(3), ldc = shape.n + Below(3);
    const auto a = Random(int64_t{a_rows} * lda), b = Random(int64_t{b_rows} * ldb);
    const auto bias = Random(shape.n), mask = Random(int64_t{shape.m} * ldc);
    const auto before = Random(int64_t{shape.m} * ldc + 7);
    auto c = before;
    Multiply({.m = shape.m,
              .n = shape.n,
              .k = shape.k,
              .a = a.data(),
              .a_row = a_transposed ? 1 : lda,
              .a_col = a_transposed ? lda : 1,
              .b = b.data(),
              .ldb = ldb,
              .b_transposed = b_transposed,
              .c = c.data(),
              .ldc = ldc,
              .accumulate = accumulate,
              .bias = with_bias ? bias.data() : nullptr,
              .relu = relu,
              .mask = with_mask ? mask.data() : nullptr,
              .ldmask = ldc});
    for (int i = 0; i < shape.m; ++i) {
      for (int j = 0; j < ldc; ++j) {
        const auto at = static_cast<size_t>(i) * ldc + j;
        if (j >= shape.n) {
          ASSERT_EQ(c[at], before[at]) << "Gemm wrote outside C at " << i << ", " << j;
          continue;
        }
        double sum = accumulate ? before[at] : 0;
        for (int p = 0; p < shape.k; ++p) {
          sum += double{Rounded(a[static_cast<size_t>(a_transposed ? p * lda + i : i * lda + p)])} *
                 Rounded(b[static_cast<size_t>(b_transposed ? j * ldb + p : p * ldb + j)]);
        }
        if (with_bias) sum += bias[static_cast<size_t>(j)];
        if (relu) sum = std::max(sum, 0.0);
        if (with_mask && mask[at] <= 0) sum = 0;
        ASSERT_NEAR(c[at], sum, 2e-5 * std::sqrt(shape.k + 1.0)) << "at " << i << ", " << j;
      }
    }
    for (size_t at = static_cast<size_t>(shape.m) * ldc; at < c.size(); ++at) {
      ASSERT_EQ(c[at], before[at]) << "Gemm wrote after the end of C";
    }
  }

  AlignedBuffer workspace_;
  RandomStream random_{20250102, RandomPurpose::kSampleData, 8};
};

INSTANTIATE_TEST_SUITE_P(Isa, GemmTest,
                         testing::ValuesIn(SupportedKernels().begin(), SupportedKernels().end()),
                         [](const auto& isa) { return std::string(isa.param->name); });

TEST_P(GemmTest, SmallShapesInAllVariants) {
  for (unsigned variant = 0; variant < 64; ++variant) {
    for (int i = 0; i < 12; ++i) Check({1 + Below(30), 1 + Below(70), 1 + Below(40)}, variant);
    Check({1, 1, 1}, variant);
    Check({13, 1, 29}, variant);
    Check({13, 29, 1}, variant);
    Check({1, 50, 20}, variant);
    Check({24, 48, 3}, variant);
  }
}

TEST_P(GemmTest, LargeShapesArePacked) {
  for (unsigned variant = 0; variant < 8; ++variant) {
    Check({211, 130, 300}, variant);
    Check({40, 100, 520}, variant | 16);
    Check({17, 257, 257}, variant | 56);
  }
}

TEST_P(GemmTest, NoTermsGiveTheBiasOnly) {
  const std::vector<float> bias = {1, -2, 3};
  std::vector<float> c(6, 9);
  Gemm(*GetParam(),
       {.m = 2, .n = 3, .k = 0, .a_row = 1, .ldb = 3, .c = c.data(), .ldc = 3, .bias = bias.data()},
       workspace_);
  EXPECT_THAT(c, ElementsAreArray({1, -2, 3, 1, -2, 3}));
}

// Uses the tiles of the processor, if it has them.
class Bf16GemmTest : public GemmTest {
 protected:
  void SetUp() override {
    if (!SupportsBf16()) GTEST_SKIP() << "this processor has no AMX with bfloat16";
  }
  void Multiply(const GemmCall& call) override {
    const TileKernels& tiles = *ActiveTileKernels();
    tiles.gemm(call, workspace_.Reserve(tiles.gemm_workspace(call)));
  }
  float Rounded(float x) const override { return RoundedToBf16(x); }
};

INSTANTIATE_TEST_SUITE_P(Isa, Bf16GemmTest, testing::Values(SupportedKernels().front()),
                         [](const auto&) { return "amx"; });

TEST_P(Bf16GemmTest, AllVariants) {
  for (unsigned variant = 0; variant < 64; ++variant) {
    for (int i = 0; i < 6; ++i) Check({1 + Below(80), 1 + Below(80), 1 + Below(80)}, variant);
    Check({1, 1, 1}, variant);
    Check({32, 32, 32}, variant);
    Check({33, 65, 31}, variant);
  }
}

TEST_P(Bf16GemmTest, LargeShapesAreBlocked) {
  for (unsigned variant = 0; variant < 8; ++variant) {
    Check({300, 70, 130}, variant | 56);
    Check({40, 100, 2100}, variant | 16);
  }
}

// What Gemm() does with the flag `bf16`: small products stay in float, large ones are rounded.
TEST(Gemm, RoundsOnlyWhereItPays) {
  if (!SupportsBf16()) GTEST_SKIP() << "this processor has no AMX with bfloat16";
  AlignedBuffer workspace;
  for (const int n : {8, 512}) {
    const std::vector<float> a(static_cast<size_t>(n) * n, 1.001f);
    std::vector<float> c(a.size());
    Gemm({.m = n,
          .n = n,
          .k = n,
          .a = a.data(),
          .a_row = n,
          .b = a.data(),
          .ldb = n,
          .c = c.data(),
          .ldc = n,
          .bf16 = true},
         workspace);
    const float factor = n == 8 ? 1.001f : 1.0f;
    EXPECT_NEAR(c.front(), factor * factor * static_cast<float>(n), 1e-3);
    EXPECT_EQ(c.front(), c.back());
  }
}

// A B that several threads packed, one part each, used for products with different numbers of rows.
TEST(Gemm, PackedBGivesTheSameBits) {
  if (!SupportsBf16()) GTEST_SKIP() << "this processor has no AMX with bfloat16";
  AlignedBuffer workspace, packed_memory;
  RandomStream random(20250102, RandomPurpose::kSampleData, 9);
  for (const bool transposed : {false, true}) {
    for (const auto& [n, k] : {std::pair{64, 64}, {100, 65}, {845, 130}, {70, 2100}}) {
      std::vector<float> a(static_cast<size_t>(90) * k), b(static_cast<size_t>(n) * k);
      for (auto* const x : {&a, &b}) {
        for (float& v : *x) v = static_cast<float>(random.Normal());
      }
      std::vector<float> expected(static_cast<size_t>(90) * n), c(expected.size());
      GemmCall call{.m = 90,
                    .n = n,
                    .k = k,
                    .a = a.data(),
                    .a_row = k,
                    .b = b.data(),
                    .ldb = transposed ? k : n,
                    .b_transposed = transposed,
                    .c = expected.data(),
                    .ldc = n,
                    .bf16 = true};
      Gemm(call, workspace);
      call.c = c.data();
      for (const int parts : {1, 2, 5, 40}) {
        float* const packed = packed_memory.Reserve(PackedFloats(call));
        std::fill_n(packed, PackedFloats(call), 0.0f);
        for (int part = 0; part < parts; ++part) PackForGemm(call, part, parts, packed);
        call.packed_b = packed;
        Gemm(call, workspace);
        EXPECT_EQ(c, expected) << n << " x " << k << " in " << parts;
        call.packed_b = nullptr;
      }
    }
  }
  EXPECT_EQ(PackedFloats({.m = 8, .n = 512, .k = 512, .bf16 = true}), 0U) << "stays in float";
  EXPECT_EQ(PackedFloats({.m = 512, .n = 512, .k = 512}), 0U);
}

// The same row of A gives the same bits wherever it stands and however many rows there are.
TEST_P(GemmTest, ResultsDoNotDependOnTheRowsPosition) {
  const int n = 75, k = 100;
  const auto row = Random(k), b = Random(int64_t{k} * n);
  std::vector<float> expected;
  for (const int m : {1, 2, 3, 5, 8, 12, 13, 23, 24, 25, 40, 77, 200}) {
    std::vector<float> a, c(static_cast<size_t>(m) * n);
    for (int i = 0; i < m; ++i) a.insert(a.end(), row.begin(), row.end());
    Gemm(*GetParam(),
         {.m = m,
          .n = n,
          .k = k,
          .a = a.data(),
          .a_row = k,
          .b = b.data(),
          .ldb = n,
          .c = c.data(),
          .ldc = n},
         workspace_);
    if (expected.empty()) expected = c;
    for (int i = 0; i < m; ++i) {
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), c.begin() + int64_t{i} * n))
          << "row " << i << " of " << m;
    }
  }
}

// A diverged model must show in the loss: relu must not turn NaN into 0.
TEST_P(GemmTest, ReluKeepsNan) {
  for (const int n : {1, 5, 40}) {
    const std::vector<float> a = {NAN}, b(static_cast<size_t>(n), 1.0f);
    std::vector<float> c(static_cast<size_t>(n));
    Gemm(*GetParam(),
         {.m = 1,
          .n = n,
          .k = 1,
          .a = a.data(),
          .a_row = 1,
          .b = b.data(),
          .ldb = n,
          .c = c.data(),
          .ldc = n,
          .relu = true},
         workspace_);
    for (const float v : c) EXPECT_TRUE(std::isnan(v));
  }
}

TEST_P(GemmTest, ColumnSums) {
  for (const int cols : {1, 5, 16, 63, 64, 65, 130}) {
    const int rows = 19, ld = cols + 2;
    const auto x = Random(rows * ld), before = Random(cols + 1);
    for (const bool accumulate : {false, true}) {
      auto sums = before;
      GetParam()->column_sums(x.data(), rows, cols, ld, accumulate, sums.data());
      for (int j = 0; j < cols; ++j) {
        double sum = accumulate ? before[static_cast<size_t>(j)] : 0;
        for (int i = 0; i < rows; ++i) sum += x[static_cast<size_t>(i * ld + j)];
        EXPECT_NEAR(sums[static_cast<size_t>(j)], sum, 1e-5);
      }
      EXPECT_EQ(sums.back(), before.back());
    }
  }
}

}  // namespace
}  // namespace muster::math
