// BatchNorm over the rows of several replicas, and of threads that count as replicas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <limits>
#include <mutex>
#include <thread>

#include "muster/engine/native/graph.h"
#include "muster/engine/native/test_support.h"

namespace muster::engine::native {
namespace {

using features::FeatureBatch;

std::unique_ptr<Engine> NewNet(bool synchronized, const EngineOptions& options) {
  GraphBuilder graph;
  Node x = graph.BatchNorm(graph.DenseInput(0, 3), {.name = "n0", .synchronized = synchronized});
  x = graph.Dense(x, {.name = "h", .units = 5, .activation = Activation::kTanh});
  x = graph.BatchNorm(x, {.name = "n1", .synchronized = synchronized});
  return std::move(graph)
      .Finish(graph.Dense(x, {.name = "logits", .units = 1}), NewBinaryHead(), options)
      .value();
}

void ExpectNear(const std::vector<float>& got, const std::vector<float>& want,
                const std::string& name) {
  ASSERT_EQ(got.size(), want.size()) << name;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 1e-6 * (1 + std::fabs(want[i]))) << name << " " << i;
  }
}

class BatchNormTest : public testing::Test {
 protected:
  const FeatureBatch batch_ = RandomBatch({.rows = 23, .dense_widths = {3}});

  // Runs a step on two replicas at once; the first one has `rows` rows of the batch.
  std::vector<absl::StatusOr<StepResult>> StepOfTwo(const std::vector<FeatureBatch>& parts,
                                                    int threads, std::vector<RecordingSink>* sinks,
                                                    SumsOfTwo& pair) {
    std::vector<absl::StatusOr<StepResult>> results(2);
    engines_.clear();
    sinks->clear();
    for (int i = 0; i < 2; ++i) engines_.push_back(NewNet(true, {.threads = threads}));
    for (int i = 0; i < 2; ++i) sinks->emplace_back(*engines_[static_cast<size_t>(i)]);
    std::vector<std::jthread> sides;
    for (size_t i = 0; i < 2; ++i) {
      sides.emplace_back([&, i] {
        TestWeights weights(*engines_[i]);
        results[i] =
            engines_[i]->Step(weights.views(), parts[i],
                              {.denominator = 23, .replica_sums = &pair.sides[i]}, (*sinks)[i]);
      });
    }
    sides.clear();
    return results;
  }

  std::vector<std::unique_ptr<Engine>> engines_;
};

TEST_F(BatchNormTest, AReplicaWithoutAFiniteLossBlocksNoOther) {
  std::vector<FeatureBatch> parts = {GetRows(batch_, 0, 10), GetRows(batch_, 10, 23)};
  parts[0].weights.assign(10, std::numeric_limits<float>::infinity());
  for (const int threads : {1, 2}) {
    SumsOfTwo pair;
    std::vector<RecordingSink> sinks;
    const auto results = StepOfTwo(parts, threads, &sinks, pair);
    ASSERT_TRUE(results[0].ok() && results[1].ok());
    EXPECT_FALSE(std::isfinite(results[0]->loss));
    EXPECT_TRUE(std::isfinite(results[1]->loss));
    EXPECT_EQ(pair.sides[0].calls, 8);
    EXPECT_EQ(pair.sides[1].calls, 8);
  }
}

TEST_F(BatchNormTest, ALostReplicaEndsTheStepWithItsCause) {
  for (const int threads : {1, 2}) {
    for (const int call : {0, 3, 4, 7}) {
      SumsOfTwo pair;
      for (auto& side : pair.sides) side.fail_at = call;
      std::vector<RecordingSink> sinks;
      const auto results =
          StepOfTwo({GetRows(batch_, 0, 10), GetRows(batch_, 10, 23)}, threads, &sinks, pair);
      for (const auto& result : results) EXPECT_TRUE(absl::IsAborted(result.status()));
    }
  }
}

TEST_F(BatchNormTest, ThreadsThatAreReplicasNormalizeForThemselves) {
  const auto both = NewNet(false, {.threads = 2, .sub_batches_are_replicas = true});
  TestWeights weights(*both);
  RecordingSink got(*both);
  ASSERT_TRUE(both->Step(weights.views(), batch_, {}, got).ok());

  const int rows = 11;  // rows of the first of two runs of nearly equal length
  std::map<std::string, std::vector<double>, std::less<>> want;
  for (const auto& part : {GetRows(batch_, 0, rows), GetRows(batch_, rows, 23)}) {
    const auto alone = NewNet(false, {});
    RecordingSink sink(*alone);
    ASSERT_TRUE(alone->Step(weights.views(), part, {.denominator = 23}, sink).ok());
    const auto add = [&](const std::string& name, const std::vector<float>& values, double by) {
      want[name].resize(values.size());
      for (size_t i = 0; i < values.size(); ++i) want[name][i] += values[i] * by;
    };
    for (const auto& [name, values] : sink.dense) add(name, values, 1);
    for (const auto& [name, values] : sink.statistics) add(name, values, part.rows / 23.0);
  }
  got.dense.merge(got.statistics);
  ASSERT_EQ(got.dense.size(), want.size());
  for (const auto& [name, values] : want) {
    ExpectNear(got.dense[name], {values.begin(), values.end()}, name);
  }
}

TEST_F(BatchNormTest, SynchronizedThreadsThatAreReplicasShareTheirStatistics) {
  const auto both = NewNet(true, {.threads = 2, .sub_batches_are_replicas = true});
  const auto plain = NewNet(false, {.threads = 2});
  TestWeights weights(*both);
  RecordingSink got(*both), want(*plain);
  ASSERT_TRUE(both->Step(weights.views(), batch_, {}, got).ok());
  ASSERT_TRUE(plain->Step(weights.views(), batch_, {}, want).ok());
  EXPECT_EQ(got.dense, want.dense);
  EXPECT_EQ(got.statistics, want.statistics);
}

}  // namespace
}  // namespace muster::engine::native
