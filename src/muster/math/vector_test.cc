#include "muster/math/vector.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/random.h"
#include "muster/math/rows.h"

namespace muster::math {
namespace {

using ::testing::Each;

class VectorTest : public testing::TestWithParam<const Kernels*> {
 protected:
  std::vector<float> Random(size_t n, double scale = 1) {
    std::vector<float> x(n);
    for (float& v : x) v = static_cast<float>(scale * random_.Normal());
    return x;
  }
  // Advances the stream, so that each call draws new numbers.
  RandomStream random_{20250101, RandomPurpose::kSampleData, 7};
};

INSTANTIATE_TEST_SUITE_P(Isa, VectorTest,
                         testing::ValuesIn(SupportedKernels().begin(), SupportedKernels().end()),
                         [](const auto& isa) { return std::string(isa.param->name); });

TEST_P(VectorTest, SumsAgreeWithDoubles) {
  for (const size_t n : {0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 63, 64, 65, 100, 1000}) {
    const auto x = Random(n), y = Random(n);
    double dot = 0, squares = 0, magnitudes = 0;
    for (size_t i = 0; i < n; ++i) {
      dot += double{x[i]} * y[i];
      squares += double{x[i]} * x[i];
      magnitudes += std::fabs(x[i]);
    }
    EXPECT_NEAR(GetParam()->dot(x.data(), y.data(), n), dot, 1e-4) << n;
    EXPECT_NEAR(GetParam()->sum_of_squares(x.data(), n), squares, 1e-9) << n;
    EXPECT_NEAR(GetParam()->sum_of_magnitudes(x.data(), n), magnitudes, 1e-9) << n;
  }
}

TEST_P(VectorTest, ElementwiseLoops) {
  const auto x = Random(37), y = Random(37);
  auto sum = y, scaled_sum = y, scaled = x;
  GetParam()->add_to(x.data(), sum.data(), 37);
  GetParam()->axpy(0.5f, x.data(), scaled_sum.data(), 37);
  GetParam()->scale(-3, scaled.data(), 37);
  for (size_t i = 0; i < 37; ++i) {
    EXPECT_EQ(sum[i], y[i] + x[i]);
    EXPECT_EQ(scaled_sum[i], y[i] + 0.5f * x[i]);
    EXPECT_EQ(scaled[i], -3 * x[i]);
  }
  auto clamped = x;
  GetParam()->clamp(0.5f, clamped.data(), 37);
  for (size_t i = 0; i < 37; ++i) EXPECT_EQ(clamped[i], std::fmax(-0.5f, std::fmin(0.5f, x[i])));
  GetParam()->fill(scaled.data(), 37, 2.5f);
  EXPECT_THAT(scaled, Each(2.5f));
}

// Compares a hundred steps with the rule in doubles.
TEST_P(VectorTest, AdagradFollowsItsRule) {
  const size_t n = 21;
  auto w = Random(n);
  std::vector<float> acc(n, 0.1f);
  std::vector<double> w_true(w.begin(), w.end()), acc_true(acc.begin(), acc.end());
  for (int step = 0; step < 100; ++step) {
    const auto g = Random(n, 0.3);
    GetParam()->adagrad(w.data(), acc.data(), g.data(), n, {0.05f, 1e-7f});
    for (size_t i = 0; i < n; ++i) {
      acc_true[i] += double{g[i]} * g[i];
      w_true[i] -= 0.05 * g[i] / (std::sqrt(acc_true[i]) + 1e-7);
    }
  }
  for (size_t i = 0; i < n; ++i) {
    EXPECT_NEAR(w[i], w_true[i], 2e-6);
    EXPECT_NEAR(acc[i], acc_true[i], 1e-5);
  }
}

// Takes one step from accumulators of every size, some in one block with others of very different
// size.
TEST_P(VectorTest, AdagradStepsAreRightFromAnyAccumulator) {
  const std::vector<float> sizes = {0, 1e-42f, 1e-37f, 1e-12f, 1e-6f, 0.1f,
                                    1, 3,      1e6f,   1e36f,  3e38f};
  const size_t n = 700;
  const auto g = Random(n, 0.3);
  for (const float epsilon : {0.0f, 1e-7f, 1e-3f, 2.0f}) {
    for (size_t mixed = 0; mixed <= sizes.size(); ++mixed) {
      std::vector<float> w(n, 0), acc(n);
      for (size_t i = 0; i < n; ++i) acc[i] = mixed < sizes.size() ? sizes[mixed] : sizes[i % 11];
      const auto before = acc;
      GetParam()->adagrad(w.data(), acc.data(), g.data(), n, {0.05f, epsilon});
      for (size_t i = 0; i < n; ++i) {
        const double sum = before[i] + double{g[i]} * g[i];
        const double step = -0.05 * g[i] / (std::sqrt(sum) + epsilon);
        EXPECT_NEAR(w[i], step, 1e-6 * std::abs(step)) << before[i] << ", epsilon " << epsilon;
      }
    }
  }
}

TEST_P(VectorTest, FtrlFollowsItsRule) {
  const size_t n = 21;
  const FtrlRule rule{.learning_rate = 0.2f, .l1 = 0.3f, .l2 = 0.1f, .l2_shrinkage = 0.05f};
  auto w = Random(n, 0.1);
  std::vector<float> acc(n, 0.1f), z(n, 0);
  std::vector<double> w_true(w.begin(), w.end()), acc_true(acc.begin(), acc.end()), z_true(n, 0);
  int zeros = 0;
  for (int step = 0; step < 100; ++step) {
    const auto g = Random(n, 0.3);
    GetParam()->ftrl(w.data(), z.data(), acc.data(), g.data(), n, rule);
    for (size_t i = 0; i < n; ++i) {
      const double next = acc_true[i] + double{g[i]} * g[i];
      z_true[i] += g[i] + 2 * 0.05 * w_true[i] -
                   (std::sqrt(next) - std::sqrt(acc_true[i])) / 0.2 * w_true[i];
      acc_true[i] = next;
      const double sign = z_true[i] > 0 ? 1 : -1;
      w_true[i] = std::fabs(z_true[i]) <= 0.3f
                      ? 0
                      : (sign * 0.3f - z_true[i]) / (std::sqrt(next) / 0.2 + 2 * 0.1);
      zeros += w[i] == 0;
    }
  }
  EXPECT_GT(zeros, 0);
  for (size_t i = 0; i < n; ++i) {
    EXPECT_NEAR(w[i], w_true[i], 2e-6);
    EXPECT_NEAR(z[i], z_true[i], 2e-5);
    EXPECT_NEAR(acc[i], acc_true[i], 1e-5);
  }
}

TEST_P(VectorTest, AdamFollowsItsRule) {
  const size_t n = 21;
  auto w = Random(n);
  std::vector<float> m(n, 0), v(n, 0);
  std::vector<double> w_true(w.begin(), w.end()), m_true(n, 0), v_true(n, 0);
  for (int step = 1; step <= 100; ++step) {
    const auto g = Random(n, 0.3);
    const double rate = 0.01 * std::sqrt(1 - std::pow(0.999, step)) / (1 - std::pow(0.9, step));
    GetParam()->adam(w.data(), m.data(), v.data(), g.data(), n,
                     {static_cast<float>(rate), 0.9f, 0.999f, 1e-7f});
    for (size_t i = 0; i < n; ++i) {
      m_true[i] += (g[i] - m_true[i]) * (1 - 0.9);
      v_true[i] += (double{g[i]} * g[i] - v_true[i]) * (1 - 0.999);
      w_true[i] -= rate * m_true[i] / (std::sqrt(v_true[i]) + 1e-7);
    }
  }
  for (size_t i = 0; i < n; ++i) EXPECT_NEAR(w[i], w_true[i], 5e-6);
}

// The update of a row without a gradient is Adam with a gradient of 0.
TEST_P(VectorTest, AdamOfATableFollowsItsRule) {
  const size_t n = 21;
  const AdamRule rule{0.01f, 0.9f, 0.999f, 1e-7f};
  const std::vector<float> zeros(n, 0);
  const auto w = Random(n), m = Random(n), g = Random(n);
  const std::vector<float> v(n, 0.3f);
  const int32_t row = 0;
  for (const bool has_gradient : {false, true}) {
    auto w1 = w, m1 = m, v1 = v, w2 = w, m2 = m, v2 = v;
    if (has_gradient) {
      GetParam()->adam_sparse_rows(w1.data(), m1.data(), v1.data(), n, &row, 1, g.data(), rule);
    } else {
      GetParam()->adam_decay(w1.data(), m1.data(), v1.data(), n, rule);
    }
    GetParam()->adam(w2.data(), m2.data(), v2.data(), has_gradient ? g.data() : zeros.data(), n,
                     rule);
    for (size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(w1[i], w2[i], 1e-6);
      EXPECT_NEAR(m1[i], m2[i], 1e-6);
      EXPECT_NEAR(v1[i], v2[i], 1e-6);
      EXPECT_NE(w1[i], w[i]);
    }
  }
}

// Rows change as the dense rule says, other rows stay. For any number of columns.
TEST_P(VectorTest, RowsMoveAsDenseOnes) {
  for (const size_t cols : {1, 3, 8, 16, 20}) {
    const size_t count = 70, table_rows = 200;
    std::vector<int32_t> rows;
    for (size_t i = 0; i < count; ++i) rows.push_back(static_cast<int32_t>(i * 77 % table_rows));
    const auto w = Random(table_rows * cols), g = Random(count * cols);
    const std::vector<float> slot(table_rows * cols, 0.1f);
    const AdagradRule adagrad{0.05f, 1e-7f};
    const FtrlRule ftrl{0.2f, 0.01f, 0.1f, 0};
    const AdamRule adam{0.01f, 0.9f, 0.999f, 1e-7f};
    const MomentumRule momentum{0.05f, 0.9f, true};
    const RmsPropRule rms_prop{0.05f, 0.9f, 0.5f, 1e-3f};
    struct Slots {
      std::vector<float> w, a, b, c;
    };
    constexpr int kRules = 6;
    const Slots begin = {w, slot, slot, slot};
    Slots by_rows[kRules] = {begin, begin, begin, begin, begin, begin};
    Slots by_row[kRules] = {begin, begin, begin, begin, begin, begin};
    const Kernels& k = *GetParam();
    auto& [ada, ftr, adm, mom, rms, sgd] = by_rows;
    k.adagrad_rows(ada.w.data(), ada.a.data(), cols, rows.data(), count, g.data(), adagrad);
    k.ftrl_rows(ftr.w.data(), ftr.a.data(), ftr.b.data(), cols, rows.data(), count, g.data(), ftrl);
    k.adam_rows(adm.w.data(), adm.a.data(), adm.b.data(), cols, rows.data(), count, g.data(), adam);
    k.momentum_rows(mom.w.data(), mom.a.data(), cols, rows.data(), count, g.data(), momentum);
    k.rms_prop_rows(rms.w.data(), rms.a.data(), rms.b.data(), rms.c.data(), cols, rows.data(),
                    count, g.data(), rms_prop);
    k.sgd_rows(sgd.w.data(), cols, rows.data(), count, g.data(), 0.1f);
    for (size_t i = 0; i < count; ++i) {
      const size_t at = static_cast<size_t>(rows[i]) * cols;
      const float* row_gradient = g.data() + i * cols;
      auto& [a, f, m, o, r, s] = by_row;
      k.adagrad(&a.w[at], &a.a[at], row_gradient, cols, adagrad);
      k.ftrl(&f.w[at], &f.a[at], &f.b[at], row_gradient, cols, ftrl);
      k.adam(&m.w[at], &m.a[at], &m.b[at], row_gradient, cols, adam);
      k.momentum(&o.w[at], &o.a[at], row_gradient, cols, momentum);
      k.rms_prop(&r.w[at], &r.a[at], &r.b[at], &r.c[at], row_gradient, cols, rms_prop);
      k.axpy(-0.1f, row_gradient, &s.w[at], cols);
    }
    for (int i = 0; i < kRules; ++i) {
      if (i == 4) {  // the dense form of this rule rounds differently
        for (size_t j = 0; j < w.size(); ++j) EXPECT_NEAR(rms.w[j], by_row[i].w[j], 1e-5);
        continue;
      }
      EXPECT_EQ(by_rows[i].w, by_row[i].w) << cols << " columns, rule " << i;
      EXPECT_EQ(by_rows[i].a, by_row[i].a) << cols << " columns, rule " << i;
      EXPECT_EQ(by_rows[i].b, by_row[i].b) << cols << " columns, rule " << i;
      EXPECT_EQ(by_rows[i].c, by_row[i].c) << cols << " columns, rule " << i;
      EXPECT_NE(by_rows[i].w, w);
    }
  }
}

TEST_P(VectorTest, RowsOfSeveralTablesAreSummed) {
  constexpr int64_t kStride = 160;
  const std::vector<int32_t> ids = {9, 9, 0, -1, 2, 3, -1, 1};  // the first two are skipped
  const std::vector<int32_t> columns = {3, 0, 1};
  const auto bias = Random(kStride), kernel = Random(3 * kStride), inputs = Random(8 * 5);
  for (const size_t cols : {1, 16, 25, 100, 131, 160}) {
    for (const size_t count : {0, 1, 3}) {
      std::vector<std::vector<float>> rows;
      std::vector<RowTable> tables;
      for (size_t t = 0; t < count; ++t) {
        rows.push_back(Random(5 * kStride));
        tables.push_back({rows[t].data(), ids.data()});
      }
      const int64_t ld = static_cast<int64_t>(cols) + 1;
      std::vector<float> out(6 * (cols + 1), 7);
      const bool relu = count == 1;
      GetParam()->sum_rows({.tables = tables.data(),
                            .count = count,
                            .stride = kStride,
                            .bias = bias.data(),
                            .inputs = inputs.data(),
                            .ld_inputs = 5,
                            .columns = columns.data(),
                            .k = 3,
                            .kernel = kernel.data(),
                            .relu = relu},
                           2, 6, cols, out.data(), ld);
      for (size_t i = 0; i < 6; ++i) {
        for (size_t j = 0; j < cols; ++j) {
          float sum = bias[j];
          for (const auto& table : rows) {
            sum += table[static_cast<size_t>(ids[i + 2] + 1) * kStride + j];
          }
          for (size_t p = 0; p < 3; ++p) {
            sum += inputs[(i + 2) * 5 + static_cast<size_t>(columns[p])] * kernel[p * kStride + j];
          }
          EXPECT_NEAR(out[i * (cols + 1) + j], relu ? std::max(sum, 0.0f) : sum, 1e-5)
              << cols << " columns, row " << i << ", column " << j;
        }
        EXPECT_EQ(out[i * (cols + 1) + cols], 7);
      }
    }
  }
}

TEST(RowsTest, ARowOutsideTheTableIsFound) {
  EXPECT_EQ(RowOutside({}, 0), std::nullopt);
  EXPECT_EQ(RowOutside(std::vector<int32_t>{0, 4, 2}, 5), std::nullopt);
  EXPECT_EQ(RowOutside(std::vector<int32_t>{0, 5, 2}, 5), 5);
  EXPECT_EQ(RowOutside(std::vector<int32_t>{0, -1, 2}, 5), -1);
  EXPECT_EQ(RowOutside(std::vector<int32_t>{0}, 0), 0);
  EXPECT_EQ(RowOutside(std::vector<int32_t>{INT32_MIN}, int64_t{1} << 31), INT32_MIN);
}

TEST_P(VectorTest, RowsAreGatheredAndAddedWhereTheIndexSaysSo) {
  for (const size_t cols : {1, 3, 4, 8, 16, 20, 32}) {
    const std::vector<int32_t> indices = {4, -1, 0, 4, 2, 4, -1, 1};
    const int64_t ld = static_cast<int64_t>(cols) + 1;
    const auto table = Random(5 * cols);
    std::vector<float> out(indices.size() * (cols + 1), 7), sums(5 * cols, 0), expected = sums;
    GetParam()->gather_rows(table.data(), cols, indices.data(), indices.size(), out.data(), ld);
    for (size_t i = 0; i < indices.size(); ++i) {
      for (size_t j = 0; j < cols; ++j) {
        const bool none = indices[i] < 0;
        const size_t at = none ? j : static_cast<size_t>(indices[i]) * cols + j;
        EXPECT_EQ(out[i * (cols + 1) + j], none ? 0 : table[at]);
        if (!none) expected[at] += out[i * (cols + 1) + j];
      }
      EXPECT_EQ(out[i * (cols + 1) + cols], 7);
    }
    GetParam()->scatter_add_rows(out.data(), ld, cols, indices.data(), indices.size(), sums.data());
    EXPECT_EQ(sums, expected);
  }
  const auto table = Random(50), before = Random(37);
  auto out = before;
  std::vector<int32_t> indices;
  for (int i = 0; i < 37; ++i) indices.push_back(i % 5 == 0 ? -1 : i * 7 % 50);
  GetParam()->gather_add(table.data(), indices.data(), 37, out.data());
  for (size_t i = 0; i < 37; ++i) {
    EXPECT_EQ(out[i],
              indices[i] < 0 ? before[i] : before[i] + table[static_cast<size_t>(indices[i])]);
  }
}

// A run must not depend on the processor it happens to get: the rules give the same bits on all
// instruction sets, at any alignment.
TEST_P(VectorTest, RulesGiveTheSameBitsOnEveryInstructionSet) {
  const Kernels& baseline = *SupportedKernels().back();
  for (size_t offset = 0; offset < 4; ++offset) {
    const size_t n = 50;
    const auto w = Random(n + offset), g = Random(n + offset, 0.1);
    constexpr int kRules = 8;
    std::vector<float> mine[kRules], theirs[kRules];
    for (int i = 0; i < kRules; ++i) mine[i] = theirs[i] = w;
    std::vector<float> a(n + offset, 0.1f), b(n + offset, 0.2f);
    auto run = [&](const Kernels& k, std::vector<float>* to, std::vector<float> s,
                   std::vector<float> t) {
      const float* gradient = g.data() + offset;
      k.adagrad(to[0].data() + offset, s.data() + offset, gradient, n, {0.05f, 1e-7f});
      k.ftrl(to[1].data() + offset, t.data() + offset, s.data() + offset, gradient, n,
             {0.2f, 0.1f, 0.1f, 0});
      k.adam(to[2].data() + offset, t.data() + offset, s.data() + offset, gradient, n,
             {0.01f, 0.9f, 0.999f, 1e-7f});
      k.momentum(to[3].data() + offset, t.data() + offset, gradient, n, {0.1f, 0.9f, true});
      float* const ms = s.data() + offset;
      float* const mom = t.data() + offset;
      const RmsPropRule rms_prop{0.1f, 0.9f, 0.5f, 1e-3f};
      k.rms_prop(to[4].data() + offset, ms, nullptr, nullptr, gradient, n, rms_prop);
      k.rms_prop(to[5].data() + offset, ms, nullptr, mom, gradient, n, rms_prop);
      k.rms_prop(to[6].data() + offset, ms, mom, nullptr, gradient, n, rms_prop);
      k.adam_decay(to[7].data() + offset, mom, ms, n, {0.01f, 0.9f, 0.999f, 1e-7f});
    };
    run(*GetParam(), mine, a, b);
    run(baseline, theirs, a, b);
    for (int i = 0; i < kRules; ++i) {
      for (size_t j = 0; j < n + offset; ++j) {
        EXPECT_EQ(std::bit_cast<uint32_t>(mine[i][j]), std::bit_cast<uint32_t>(theirs[i][j]));
      }
    }
  }
}

}  // namespace
}  // namespace muster::math
