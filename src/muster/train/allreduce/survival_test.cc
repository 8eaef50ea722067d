// No death of a replica changes the result of a training.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "muster/base/random.h"
#include "muster/base/test_size.h"
#include "muster/train/allreduce/replicated_training_test_support.h"

namespace muster::train {
namespace {

// The chief saves only at the start and at the end, so that a rollback would be noticed.
class SurvivalTest : public ReplicatedTrainingTest {
 protected:
  static constexpr int kMostDeaths = 12;

  // Returns how many replicas were killed.
  int RunWithDeaths(uint64_t seed, int size, const std::string& folder,
                    std::string_view yaml = kTestSpec) {
    guesses_ = seed % 2 == 1;
    TestCluster cluster(size);
    RandomStream random(seed, RandomPurpose::kSampleData, 1);
    std::atomic<bool> done = false;
    std::jthread killer([&] {
      // The number of deaths is limited: on a slow machine no step would be done between two
      // deaths.
      while (!done && cluster.kills() < kMostDeaths) {
        std::this_thread::sleep_for(std::chrono::microseconds(random.Below(6000)));
        cluster.Kill(static_cast<int>(random.Below(static_cast<uint64_t>(size))));
      }
    });
    const auto results = RunAll(cluster, size, LongTraining(), folder, yaml);
    for (const auto& result : results) {
      EXPECT_TRUE(result.ok()) << result.status() << " seed " << seed;
    }
    if (results[0].ok()) {
      EXPECT_EQ(results[0]->records, RecordCounts{.trained = 10 * 300}) << "seed " << seed;
    }
    done = true;
    return cluster.kills();
  }
  static TrainSpec LongTraining() {
    TrainSpec spec = Training();
    spec.input.reader.epochs = 10;
    return spec;
  }
};

TEST_F(SurvivalTest, DeathsAtAnyMomentChangeNoByte) {
  for (const int size : {2, 3}) {
    const std::string unbroken = StrCat("unbroken", size);
    TrainTogether(size, LongTraining(), unbroken);
    int kills = 0;
    for (uint64_t seed = 1; seed <= 15; ++seed) {
      const std::string folder = StrCat("deaths", size, "-", seed);
      kills += RunWithDeaths(seed, size, folder);
      EXPECT_TRUE(Weights(folder) == Weights(unbroken)) << "seed " << seed;
    }
    EXPECT_GT(kills, 15) << "too few replicas were killed";
  }
}

// Eleven replicas sum by levels, with a spare one: most deaths are seen by few of them, which tell
// the others.
TEST_F(SurvivalTest, DeathsInALargeGroupChangeNoByte) {
  TrainTogether(11, LongTraining(), "unbroken");
  int kills = 0;
  constexpr int kSeeds = 4;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const std::string folder = StrCat("deaths", seed);
    kills += RunWithDeaths(static_cast<uint64_t>(seed), 11, folder);
    EXPECT_TRUE(Weights(folder) == Weights("unbroken")) << "seed " << seed;
  }
  EXPECT_GE(kills, kSeeds) << "too few replicas were killed";
}

class SurvivalOfTest : public SurvivalTest, public testing::WithParamInterface<std::string> {};

// Replicas die in a collective of the step itself, and in sums while the backward pass continues.
TEST_P(SurvivalOfTest, DeathsDuringAStepChangeNoByte) {
  TrainTogether(3, LongTraining(), "unbroken", GetParam());
  int kills = 0;
  const int seeds = kUnderSanitizer ? 2 : 8;
  for (int seed = 1; seed <= seeds; ++seed) {
    const std::string folder = StrCat("deaths", seed);
    kills += RunWithDeaths(static_cast<uint64_t>(seed), 3, folder, GetParam());
    EXPECT_TRUE(Weights(folder) == Weights("unbroken")) << "seed " << seed;
  }
  EXPECT_GT(kills, seeds / 2) << "too few replicas were killed";
}

INSTANTIATE_TEST_SUITE_P(Model, SurvivalOfTest,
                         testing::Values(SynchronizedSpec(), LargeSpec(std::string(kTestSpec))),
                         [](const auto& model) {
                           return std::string(model.index == 0 ? "Synchronized" : "Large");
                         });

}  // namespace
}  // namespace muster::train
