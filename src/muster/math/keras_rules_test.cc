// Tests the rules of Keras in vector.h.
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "muster/base/random.h"
#include "muster/math/vector.h"

namespace muster::math {
namespace {

constexpr AdagradRule kAdagrad{0.05f, 1e-3f};
constexpr FtrlRule kFtrl{0.2f, 0.1f, 0.02f, 0.03f};
constexpr KerasAdamRule kAdam{0.01f, 0.1f, 0.001f, 1e-3f};
constexpr KerasRmsPropRule kRmsProp{0.02f, 0.9f, 0.1f, 0.5f, 1e-3f};

// Weights and three slots.
template <typename Number>
struct State {
  std::vector<Number> w, a, b, c;
};

struct Rule {
  std::string name;
  // `squares` may be null.
  std::function<void(const Kernels&, float* w, float* a, float* b, float* c, const float* g,
                     const float* squares, size_t n)>
      update;
  std::function<void(const Kernels&, State<float>&, size_t cols, const std::vector<int32_t>& rows,
                     const float* g)>
      update_rows;
  // Computes the rule for one element in double precision.
  std::function<void(double& w, double& a, double& b, double& c, double g, double s)> exact;
};

void ExactFtrl(double& w, double& z, double& acc, double& /*c*/, double g, double s) {
  const double next = acc + s, rate = double{kFtrl.learning_rate}, l1 = double{kFtrl.l1};
  z += g + 2 * double{kFtrl.l2_shrinkage} * w - (std::sqrt(next) - std::sqrt(acc)) / rate * w;
  const double clipped = std::fmin(std::fmax(z, -l1), l1);
  w = (clipped - z) / (std::sqrt(next) / rate + 2 * double{kFtrl.l2});
  acc = next;
}

void ExactAdam(double& w, double& m, double& v, double& /*c*/, double g, double s) {
  m += (g - m) * double{kAdam.one_minus_beta1};
  v += (s - v) * double{kAdam.one_minus_beta2};
  w -= m * double{kAdam.rate} / (std::sqrt(v) + double{kAdam.epsilon});
}

Rule MakeRmsPropRule(bool momentum, bool centered) {
  return {.name = std::string("rmsprop") + (momentum ? " momentum" : "") +
                  (centered ? " centered" : ""),
          .update =
              [=](const Kernels& k, float* w, float* a, float* b, float* c, const float* g,
                  const float* squares, size_t n) {
                k.keras_rms_prop(w, a, momentum ? b : nullptr, centered ? c : nullptr, g, squares,
                                 n, kRmsProp);
              },
          .update_rows =
              [=](const Kernels& k, State<float>& s, size_t cols, const std::vector<int32_t>& rows,
                  const float* g) {
                k.keras_rms_prop_rows(s.w.data(), s.a.data(), momentum ? s.b.data() : nullptr,
                                      centered ? s.c.data() : nullptr, cols, rows.data(),
                                      rows.size(), g, kRmsProp);
              },
          .exact =
              [=](double& w, double& v, double& mom, double& mean, double g, double s) {
                v = 0.9 * v + 0.1 * s;
                double spread = v;
                if (centered) {
                  mean = 0.9 * mean + 0.1 * g;
                  spread = std::fmax(0, v - mean * mean);
                }
                double step = 0.02 * g / std::sqrt(spread + 1e-3);
                if (momentum) {
                  mom = 0.5 * mom + step;
                  step = mom;
                }
                w -= step;
              }};
}

std::vector<Rule> Rules() {
  std::vector<Rule> rules = {
      {.name = "adagrad",
       .update = [](const Kernels& k, float* w, float* a, float* /*b*/, float* /*c*/,
                    const float* g, const float* squares,
                    size_t n) { k.keras_adagrad(w, a, g, squares, n, kAdagrad); },
       .update_rows =
           [](const Kernels& k, State<float>& s, size_t cols, const std::vector<int32_t>& rows,
              const float* g) {
             k.keras_adagrad_rows(s.w.data(), s.a.data(), cols, rows.data(), rows.size(), g,
                                  kAdagrad);
           },
       .exact =
           [](double& w, double& a, double& /*b*/, double& /*c*/, double g, double s) {
             a += s;
             w -= 0.05 * g / std::sqrt(a + 1e-3);
           }},
      {.name = "ftrl",
       .update = [](const Kernels& k, float* w, float* a, float* b, float* /*c*/, const float* g,
                    const float* squares,
                    size_t n) { k.keras_ftrl(w, a, b, g, squares, n, kFtrl); },
       .update_rows =
           [](const Kernels& k, State<float>& s, size_t cols, const std::vector<int32_t>& rows,
              const float* g) {
             k.keras_ftrl_rows(s.w.data(), s.a.data(), s.b.data(), cols, rows.data(), rows.size(),
                               g, kFtrl);
           },
       .exact = ExactFtrl},
      {.name = "adam",
       .update = [](const Kernels& k, float* w, float* a, float* b, float* /*c*/, const float* g,
                    const float* squares,
                    size_t n) { k.keras_adam(w, a, b, g, squares, n, kAdam); },
       .update_rows =
           [](const Kernels& k, State<float>& s, size_t cols, const std::vector<int32_t>& rows,
              const float* g) {
             k.keras_adam_rows(s.w.data(), s.a.data(), s.b.data(), cols, rows.data(), rows.size(),
                               g, kAdam);
           },
       .exact = ExactAdam}};
  for (const bool momentum : {false, true}) {
    for (const bool centered : {false, true}) rules.push_back(MakeRmsPropRule(momentum, centered));
  }
  return rules;
}

class KerasRulesTest : public testing::TestWithParam<const Kernels*> {
 protected:
  std::vector<float> Random(size_t n, double scale = 1) {
    std::vector<float> x(n);
    for (float& v : x) v = static_cast<float>(scale * random_.Normal());
    return x;
  }
  // Returns the sums of squares of values that add up to `g`.
  std::vector<float> GetSquares(const std::vector<float>& g) {
    std::vector<float> squares(g.size());
    for (size_t i = 0; i < g.size(); ++i) squares[i] = g[i] * g[i] * (0.4f + random_.Uniform());
    return squares;
  }
  State<float> Begin(size_t n) {
    return {Random(n), std::vector<float>(n, 0.1f), std::vector<float>(n, 0.2f),
            std::vector<float>(n, 0)};
  }
  RandomStream random_{20261122, RandomPurpose::kSampleData, 3};
};
INSTANTIATE_TEST_SUITE_P(All, KerasRulesTest, testing::ValuesIn(SupportedKernels()),
                         [](const auto& param) { return std::string(param.param->name); });

TEST_P(KerasRulesTest, FollowTheirFormulas) {
  const size_t n = 21;
  for (const Rule& rule : Rules()) {
    State<float> state = Begin(n);
    State<double> exact;
    for (size_t i = 0; i < n; ++i) {
      exact.w.push_back(double{state.w[i]});
      exact.a.push_back(double{state.a[i]});
      exact.b.push_back(double{state.b[i]});
      exact.c.push_back(double{state.c[i]});
    }
    for (int step = 0; step < 30; ++step) {
      const auto g = Random(n, 0.3);
      const auto squares = GetSquares(g);
      const bool given = step % 2 == 0;
      rule.update(*GetParam(), state.w.data(), state.a.data(), state.b.data(), state.c.data(),
                  g.data(), given ? squares.data() : nullptr, n);
      for (size_t i = 0; i < n; ++i) {
        const double s = given ? double{squares[i]} : double{g[i]} * double{g[i]};
        rule.exact(exact.w[i], exact.a[i], exact.b[i], exact.c[i], double{g[i]}, s);
      }
    }
    for (size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(state.w[i], exact.w[i], 2e-5) << rule.name;
      EXPECT_NEAR(state.a[i], exact.a[i], 2e-5) << rule.name;
    }
  }
}

// Rows change as a dense variable does for which squares are given; other rows stay. For any number
// of columns.
TEST_P(KerasRulesTest, RowsMoveAsDenseOnes) {
  const size_t count = 70, table_rows = 200;
  std::vector<int32_t> rows;
  for (size_t i = 0; i < count; ++i) rows.push_back(static_cast<int32_t>(i * 77 % table_rows));
  for (const Rule& rule : Rules()) {
    for (const size_t cols : {1, 3, 8, 16}) {
      const State<float> begin = Begin(table_rows * cols);
      const auto sums = Random(count * cols);
      const auto squares = GetSquares(sums);
      std::vector<float> g;
      State<float> by_rows = begin, by_row = begin;
      for (size_t i = 0; i < count; ++i) {
        const auto at = static_cast<ptrdiff_t>(i * cols), end = at + static_cast<ptrdiff_t>(cols);
        g.insert(g.end(), sums.begin() + at, sums.begin() + end);
        g.insert(g.end(), squares.begin() + at, squares.begin() + end);
        const size_t to = static_cast<size_t>(rows[i]) * cols;
        rule.update(*GetParam(), &by_row.w[to], &by_row.a[to], &by_row.b[to], &by_row.c[to],
                    &sums[i * cols], &squares[i * cols], cols);
      }
      rule.update_rows(*GetParam(), by_rows, cols, rows, g.data());
      EXPECT_EQ(by_rows.w, by_row.w) << rule.name << ", " << cols << " columns";
      EXPECT_EQ(by_rows.a, by_row.a) << rule.name << ", " << cols << " columns";
      EXPECT_EQ(by_rows.b, by_row.b) << rule.name << ", " << cols << " columns";
      EXPECT_EQ(by_rows.c, by_row.c) << rule.name << ", " << cols << " columns";
      EXPECT_NE(by_rows.w, begin.w) << rule.name;
    }
  }
}

TEST_P(KerasRulesTest, TheyGiveTheSameBitsOnEveryInstructionSet) {
  const size_t n = 53;
  for (const Rule& rule : Rules()) {
    State<float> mine = Begin(n);
    State<float> theirs = mine;
    const auto g = Random(n);
    const auto squares = GetSquares(g);
    for (const float* const given : {squares.data(), static_cast<const float*>(nullptr)}) {
      for (auto& [kernels, state] :
           {std::pair{GetParam(), &mine}, std::pair{SupportedKernels().back(), &theirs}}) {
        rule.update(*kernels, state->w.data(), state->a.data(), state->b.data(), state->c.data(),
                    g.data(), given, n);
      }
      for (size_t i = 0; i < n; ++i) {
        EXPECT_EQ(std::bit_cast<uint32_t>(mine.w[i]), std::bit_cast<uint32_t>(theirs.w[i]))
            << rule.name;
      }
    }
  }
}

// The squared sum exceeds the sum of squares, as for an id that occurs often: Keras computes NaN
// then.
TEST_P(KerasRulesTest, ACentredVarianceIsNotNegative) {
  float w = 1, v = 0, mean = 0;
  const float g = 30, square = 30;  // thirty times 1
  for (int step = 0; step < 20; ++step) {
    GetParam()->keras_rms_prop(&w, &v, nullptr, &mean, &g, &square, 1, kRmsProp);
  }
  EXPECT_TRUE(std::isfinite(w)) << w;
  EXPECT_LT(v, mean * mean);
}

}  // namespace
}  // namespace muster::math
