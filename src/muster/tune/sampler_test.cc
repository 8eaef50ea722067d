#include "muster/tune/sampler.h"

#include <algorithm>
#include <set>

#include "muster/tune/parzen.h"
#include "muster/tune/tune_test_support.h"

namespace muster::tune {
namespace {

using testing::HasSubstr;

TEST(SamplerTest, AGridHasEachPointOnce) {
  const Space space = TestSpace(
      "x: {uniform: [0, 1], points: 3}\n"
      "kind: {choice: [a, b]}\n"
      "depth: {int: [1, 4], when: {kind: b}}\n");
  const auto sampler = NewSampler({.kind = SamplerSpec::Kind::kGrid}, space, {}, 1);
  ASSERT_TRUE(sampler.ok());
  std::set<std::string> points;
  int64_t trial = 0;
  while (const auto point = (*sampler)->Next({}, trial)) {
    points.insert(PointJson(space, *point).dump());
    ++trial;
  }
  EXPECT_EQ(trial, 15);  // 3 * (a + b with 4 depths)
  EXPECT_EQ(points.size(), 15U);
  EXPECT_TRUE(points.contains(R"({"x":1.0,"kind":"b","depth":4})"));
  const Space endless = TestSpace("x: {uniform: [0, 1]}");
  EXPECT_THAT(
      ToStd(NewSampler({.kind = SamplerSpec::Kind::kGrid}, endless, {}, 1).status().message()),
      HasSubstr("points: 5"));
}

// The density of a number integrates to 1, and draws follow it.
TEST(SamplerTest, ParzenEstimatorsDrawFromTheirDensity) {
  for (const std::string yaml : {"x: {uniform: [-1, 3]}", "x: {int: [1, 9], step: 2}",
                                 "x: {int: [1, 9], log: true}", "x: {choice: [1, 2, 3]}"}) {
    const Space space = TestSpace(yaml);
    const Parameter& parameter = space.parameters[0];
    const ParzenEstimator estimator({&parameter}, {{1}, {1}, {2}});
    RandomStream kernels(1, RandomPurpose::kSearchPoint, 0);
    std::vector<RandomStream> streams = {{1, RandomPurpose::kSearchPoint, 1}};
    constexpr int kDraws = 20000;
    std::vector<double> draws(kDraws);
    for (double& draw : draws) draw = estimator.Draw(kernels, streams)[0];
    double sum = 0;
    if (parameter.kind == Parameter::Kind::kNumber) {
      for (double x = -1 + 0.005; x < 3; x += 0.01) {
        sum += 0.01 * std::exp(estimator.LogDensity({x}));
      }
      double below = 0;
      for (double x = -1 + 0.005; x < 1; x += 0.01) {
        below += 0.01 * std::exp(estimator.LogDensity({x}));
      }
      const auto drawn = std::ranges::count_if(draws, [](double x) { return x < 1; });
      EXPECT_NEAR(static_cast<double>(drawn) / kDraws, below, 0.02);
    } else {
      for (const double value : std::set<double>(draws.begin(), draws.end())) {
        const double chance = std::exp(estimator.LogDensity({value}));
        sum += chance;
        EXPECT_NEAR(static_cast<double>(std::ranges::count(draws, value)) / kDraws, chance, 0.02)
            << yaml << " " << value;
      }
    }
    EXPECT_NEAR(sum, 1, 0.01) << yaml;
  }
}

// 60 trials of a bowl: the best of TPE is better than that of random points for most seeds.
TEST(SamplerTest, TpeFindsBetterPointsThanChance) {
  const StudySpec spec = TestStudySpec();
  int better = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    double best[2] = {HUGE_VAL, HUGE_VAL};
    for (const auto kind : {SamplerSpec::Kind::kRandom, SamplerSpec::Kind::kTpe}) {
      const auto sampler = NewSampler({.kind = kind}, spec.space, spec.goal, seed);
      History history;
      for (int64_t trial = 0; trial < 60; ++trial) {
        const Point point = *(*sampler)->Next(history, trial);
        const double value = TestValue(point, 1);
        history.push_back(
            {.number = trial, .point = point, .state = TrialState::kComplete, .value = value});
        double& own = best[kind == SamplerSpec::Kind::kTpe ? 1 : 0];
        own = std::min(own, value);
      }
    }
    better += best[1] < best[0] ? 1 : 0;
  }
  EXPECT_GE(better, 8);
}

}  // namespace
}  // namespace muster::tune
