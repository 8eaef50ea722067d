// Replicas compute a step for the rows that they expect all of them to have. Where these are
// others, the step is computed again, and nothing else changes.
#include <gtest/gtest.h>

#include "muster/train/allreduce/replicated_training_test_support.h"

namespace muster::train {
namespace {

class ExpectedRowsTest : public ReplicatedTrainingTest {
 protected:
  // Of each rank.
  std::vector<int64_t> CountMessages(bool guesses, const TrainSpec& spec, const std::string& folder,
                                     const std::string& yaml) {
    guesses_ = guesses;
    TestCluster cluster(3);
    for (const auto& result : RunAll(cluster, 3, spec, folder, yaml)) {
      EXPECT_TRUE(result.ok()) << result.status();
    }
    std::vector<int64_t> counts;
    for (const auto& traffic : cluster.traffic()) counts.push_back(traffic.messages);
    return counts;
  }
};

// Of 100 rows the last batch of an epoch has 4.
TEST_F(ExpectedRowsTest, AWrongGuessCostsOneMoreExchangeAndChangesNoByte) {
  constexpr int64_t kEpochs = 5, kWrong = 2 * kEpochs - 1;  // that batch, and the next one
  TrainSpec spec = Training();
  spec.input.reader.epochs = kEpochs;
  for (const std::string& yaml : {std::string(kTestSpec), SynchronizedSpec()}) {
    const std::string name = StrCat("model-", yaml.size());
    const auto known = CountMessages(false, spec, name + "-known", yaml);
    const auto guessed = CountMessages(true, spec, name + "-guessed", yaml);
    EXPECT_TRUE(Weights(name + "-known") == Weights(name + "-guessed"));
    if (yaml != kTestSpec) continue;  // there, a step has more than one exchange
    for (size_t rank = 0; rank < known.size(); ++rank) {
      EXPECT_EQ(guessed[rank] - known[rank], 2 * kWrong) << "rank " << rank;
    }
  }
}

// Asks to stop after a step that only it knows.
class StopAfter : public Hook {
 public:
  explicit StopAfter(int64_t step) : step_(step) {}
  absl::Status AfterRun(Session& session, const StepValues&) override {
    if (session.step == step_) session.RequestStop("the test wants it");
    return absl::OkStatus();
  }

 private:
  const int64_t step_;
};

TEST_F(ExpectedRowsTest, AStopIsHeardBeforeItsStepCounts) {
  TestCluster cluster(2);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      TrainSpec spec = Training();
      if (rank == 1) spec.hooks = {std::make_shared<StopAfter>(7)};
      const auto result = RunRank(cluster, rank, 2, spec, "model", kTestSpec);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->step, 7);
    });
  }
}

}  // namespace
}  // namespace muster::train
