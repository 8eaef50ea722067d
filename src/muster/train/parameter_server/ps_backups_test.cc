// Training by parameter servers with backup replicas.
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "muster/train/parameter_server/ps_training_test_support.h"

namespace muster::train {
namespace {

class PsBackupsTest : public PsTrainingTest {
 protected:
  static int64_t GetStep(const std::map<std::string, std::string>& weights) {
    int64_t step = 0;
    std::memcpy(&step, weights.at("global_step").data(), sizeof step);
    return step;
  }
  TrainResult TrainAll(const Shape& shape, TestServers& servers, const TrainSpec& spec,
                       const std::string& folder, const Call& call) {
    const auto results = RunAll(shape, servers, spec, folder, kTestSpec, call);
    for (const auto& result : results) EXPECT_TRUE(result.ok()) << result.status();
    return results[0].ok() ? *results[0] : TrainResult();
  }
};

TEST_F(PsBackupsTest, EveryRecordIsTrainedOnceOrDropped) {
  for (const int aggregate : {1, 2}) {
    const Shape shape = {.replicas = 3, .servers = 2, .aggregate = aggregate};
    const std::string folder = StrCat("model", aggregate);
    TestServers servers(shape, kTestSpec);
    const TrainResult result = TrainAll(shape, servers, Training(), folder, {});
    ASSERT_TRUE(result.records);
    EXPECT_EQ(result.records->trained + result.records->dropped, 900);
    EXPECT_EQ(result.records->repeated, 0);
    EXPECT_EQ(static_cast<int64_t>(result.examples), result.records->trained);
    // Each replica has 21 batches; a step uses `aggregate` of them, except the last steps.
    EXPECT_GE(result.step, 21);
    EXPECT_LE(result.step, 63);
    EXPECT_EQ(GetStep(Weights(folder)), result.step);
  }
}

TEST_F(PsBackupsTest, AggregatingAllReplicasMeansNoBackups) {
  TrainWithPs({.replicas = 3, .servers = 2}, Training(), "whole");
  TrainWithPs({.replicas = 3, .servers = 2, .aggregate = 3}, Training(), "all");
  ExpectSame("all", "whole", 0);
}

// Replica 2 is held until the other replicas have done all their batches.
TEST_F(PsBackupsTest, ADeadBackupStopsNoOtherReplica) {
  const Shape shape = {.replicas = 3, .servers = 2, .aggregate = 2};
  TestServers servers(shape, kTestSpec);
  std::mutex mutex;
  std::condition_variable changed;
  std::array<int, 3> done = {};
  after_ = [&](int rank, const StepValues&) {
    const std::lock_guard lock(mutex);
    ++done.at(static_cast<size_t>(rank));
    changed.notify_all();
  };
  const TrainResult result =
      TrainAll(shape, servers, Training(), "model", [&](int rank, Session&) -> absl::Status {
        if (rank != 2) return absl::OkStatus();
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return done[0] == 21 && done[1] == 21; });
        return absl::OkStatus();
      });
  ASSERT_TRUE(result.records);
  // It then trains its own batches alone; its first batch is for the step after those of the
  // others.
  EXPECT_EQ(*result.records, RecordCounts{.trained = 900});
  EXPECT_EQ(result.step, 21 + 21);
}

TEST_F(PsBackupsTest, TheLastStepEndsAllReplicas) {
  TrainSpec spec = Training();
  spec.max_steps = 9;
  const Shape shape = {.replicas = 3, .servers = 2, .aggregate = 2};
  for (int run = 0; run < 5; ++run) {
    TestServers servers(shape, kTestSpec);
    const std::string folder = StrCat("model", run);
    const TrainResult result = TrainAll(shape, servers, spec, folder, {});
    EXPECT_EQ(result.step, 9);
    EXPECT_EQ(GetStep(Weights(folder)), 9);
    ASSERT_TRUE(result.records);
    EXPECT_LE(result.records->trained, 9 * 2 * 16);
  }
  // A later run continues at the position of each replica.
  TestServers servers(shape, kTestSpec);
  const TrainResult result = TrainAll(shape, servers, Training(), "model0", {});
  EXPECT_GE(result.first_step, 9);  // greater if other replicas were ahead of the chief
  ASSERT_TRUE(result.records);
  EXPECT_EQ(result.records->trained + result.records->dropped, 900);
}

TEST_F(PsBackupsTest, DeathsOfReplicasAndServersLoseNoRecord) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const Shape shape = {.replicas = 3, .servers = 2, .aggregate = 2};
    TestServers servers(shape, kTestSpec);
    std::mutex mutex;
    RandomStream random(seed, RandomPurpose::kSampleData, 1);
    int kills = 0;
    bool lost = false;
    const auto harm = [&](int rank, Session& session) -> absl::Status {
      const std::lock_guard lock(mutex);
      if (rank == 1 && session.step >= 12 && !std::exchange(lost, true)) {
        servers.Kill(static_cast<int>(seed % 2));
      }
      if (kills >= 6 || random.Below(8) != 0) return absl::OkStatus();
      ++kills;
      return absl::InternalError(kKilled);
    };
    const TrainResult result = TrainAll(shape, servers, Training(), StrCat("model", seed), harm);
    EXPECT_GT(kills, 2) << "seed " << seed;
    ASSERT_TRUE(result.records);
    EXPECT_EQ(result.records->trained + result.records->dropped, 900) << "seed " << seed;
  }
}

}  // namespace
}  // namespace muster::train
