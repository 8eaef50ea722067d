// Compares the record counts of parameter servers with the batches of the replicas.
#include <array>
#include <atomic>

#include "muster/train/parameter_server/ps_training_test_support.h"

namespace muster::train {
namespace {

// All 300 rows are read 3 times.
class PsCountsTest : public PsTrainingTest {
 protected:
  static constexpr int64_t kRows = 900;

  // Trains, and returns the chief's counts.
  RecordCounts Counted(const Shape& shape, TestServers& servers, const TrainSpec& spec,
                       const std::string& folder, const Call& call) {
    const auto results = RunAll(shape, servers, spec, folder, kTestSpec, call);
    for (const auto& result : results) EXPECT_TRUE(result.ok()) << result.status();
    if (!results[0].ok() || !results[0]->records) return {.trained = -1};
    return *results[0]->records;
  }
  static TrainSpec InTens() {
    TrainSpec spec = Training();
    spec.input.reader.batch_size = 10;
    return spec;
  }
};

TEST_F(PsCountsTest, TheRestsOfEpochsAreDropped) {
  TrainSpec spec = Training();
  spec.input.reader.drop_remainder = true;
  for (const bool synchronous : {true, false}) {
    const Shape shape = {.synchronous = synchronous, .replicas = 3, .servers = 2};
    const std::string folder = StrCat("model", synchronous);
    TestServers servers(shape, kTestSpec);
    // Each replica has 100 rows, in batches of 16.
    EXPECT_EQ(Counted(shape, servers, spec, folder, {}),
              (RecordCounts{.trained = 864, .dropped = 36}));
    // The last dropped rows are counted in no checkpoint: a training with more epochs continues
    // there.
    TestServers others(shape, kTestSpec);
    TrainSpec more = spec;
    more.input.reader.epochs = 4;
    EXPECT_EQ(Counted(shape, others, more, folder, {}),
              (RecordCounts{.trained = 1152, .dropped = 48}));
  }
}

TEST_F(PsCountsTest, DeathsOfReplicasRepeatNoRecord) {
  for (const bool synchronous : {true, false}) {
    const Shape shape = {.synchronous = synchronous, .replicas = 3, .servers = 2};
    TestServers servers(shape, kTestSpec);
    std::array<std::atomic<int>, 3> steps = {};
    const auto kill = [&](int rank, Session&) {
      return ++steps.at(static_cast<size_t>(rank)) == 5 + rank ? absl::InternalError(kKilled)
                                                               : absl::OkStatus();
    };
    EXPECT_EQ(Counted(shape, servers, Training(), StrCat("model", synchronous), kill),
              RecordCounts{.trained = kRows});
    for (const auto& each : steps) EXPECT_GT(each, 21) << "the replica was killed";
  }
}

TEST_F(PsCountsTest, ALostServerRepeatsTheRecordsSinceTheCheckpoint) {
  for (const int victim : {0, 1}) {
    const Shape shape = {.replicas = 2, .servers = 2};
    TestServers servers(shape, kTestSpec);
    std::atomic<int> kills = 0;
    std::atomic<int64_t> done = 0;
    // When replica 1 kills the server, it knows of every round.
    after_ = [&](int rank, const StepValues& values) {
      if (rank == 1) done += values.rows;
    };
    const RecordCounts counts = Counted(
        shape, servers, Training(), StrCat("model", victim), [&](int rank, Session& session) {
          if (rank == 1 && session.step >= 10 && kills.exchange(1) == 0) servers.Kill(victim);
          return absl::OkStatus();
        });
    EXPECT_EQ(counts.trained, kRows);
    EXPECT_EQ(counts.dropped, 0);
    EXPECT_EQ(counts.repeated, done - kRows);
    EXPECT_GE(counts.repeated, 300) << "10 steps of an epoch";
  }
}

TEST_F(PsCountsTest, EachAsynchronousReplicaRepeatsItsOwnRecords) {
  for (const int victim : {0, 1}) {
    const Shape shape = {.synchronous = false, .replicas = 3, .servers = 2};
    TestServers servers(shape, kTestSpec);
    std::atomic<int> kills = 0;
    std::atomic<int64_t> done = 0;
    after_ = [&](int, const StepValues&) { done += 10; };
    const RecordCounts counts =
        Counted(shape, servers, InTens(), StrCat("model", victim), [&](int rank, Session& session) {
          if (rank == 1 && session.step >= 20 && kills.exchange(1) == 0) servers.Kill(victim);
          return absl::OkStatus();
        });
    EXPECT_EQ(counts.trained, kRows);
    EXPECT_EQ(counts.dropped, 0);
    // If the lead is killed, a push of the other replica may have counted without its knowledge.
    EXPECT_GE(counts.repeated, done - kRows);
    EXPECT_LE(counts.repeated, done - kRows + (victim == 0 ? 2 * 10 : 0));
  }
}

}  // namespace
}  // namespace muster::train
