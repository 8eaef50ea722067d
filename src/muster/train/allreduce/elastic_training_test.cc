// Replicas leave permanently and join while the others train.
#include <chrono>
#include <thread>

#include "muster/base/crc32c.h"
#include "muster/train/allreduce/test_replicas.h"
#include "muster/train/input/shards.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

class ElasticTrainingTest : public TrainingTest {
 protected:
  static constexpr int kMost = 3, kFewest = 1;

  static TrainSpec Elastic() {
    TrainSpec spec = Training();
    spec.input.reader.epochs = 20;
    spec.input.source.shard.by = data::ShardBy::kRecord;
    spec.shards = GetShardCount(kFewest, kMost);
    return spec;
  }

  // Runs one rank, and starts it again after each of its deaths except the last.
  absl::StatusOr<TrainResult> RunRank(TestCluster& cluster, int rank, const TrainSpec& given,
                                      const std::string& folder, int lives) {
    TrainSpec spec = given;
    absl::StatusOr<TrainResult> result;
    for (int life = 0; life < lives; ++life) {
      const auto replicas = cluster.New(rank);
      spec.replicas = replicas.get();
      result = Train(folder, spec);
      if (result.ok()) return result;
      if (absl::IsUnavailable(result.status())) cluster.Kill(rank);
    }
    return result;
  }
};

// Checks that replicas that have done the same steps on the same records have the same weights.
class SameWeights : public Hook {
 public:
  absl::Status AfterRun(Session& session, const StepValues&) override {
    std::string key = StrCat(session.step);
    for (const std::string& position : session.data.positions) key += "\n" + position;
    std::string weights;
    for (const checkpoint::Tensor& tensor : session.variables.Tensors(/*with_slots=*/true)) {
      weights.append(tensor.bytes.data(), tensor.bytes.size());
    }
    const std::lock_guard lock(mutex_);
    const auto [known, first] = seen_.try_emplace(std::move(key), Crc32c(weights));
    EXPECT_EQ(known->second, Crc32c(weights)) << "at step " << session.step;
    return absl::OkStatus();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, uint32_t> seen_;
};

// Kills a worker after some steps of the chief, and rarely the chief itself.
class KillNowAndThen : public Hook {
 public:
  KillNowAndThen(TestCluster& cluster, int size, uint64_t seed)
      : cluster_(cluster),
        size_(static_cast<uint64_t>(size)),
        random_(seed, RandomPurpose::kSampleData, 3) {}
  absl::Status AfterRun(Session&, const StepValues&) override {
    if (random_.Below(12) == 0) cluster_.Kill(1 + static_cast<int>(random_.Below(size_ - 1)));
    if (random_.Below(250) == 0) cluster_.Kill(0);
    return absl::OkStatus();
  }

 private:
  TestCluster& cluster_;
  const uint64_t size_;
  RandomStream random_;
};

TEST_F(ElasticTrainingTest, EachRecordIsTrainedOncePerEpochWhenReplicasLeaveAndJoin) {
  int changes = 0;
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    TestCluster cluster(kMost, kFewest);
    TrainSpec spec = Elastic();
    spec.hooks = {std::make_shared<SameWeights>()};
    TrainSpec chief = spec;
    chief.hooks.push_back(std::make_shared<KillNowAndThen>(cluster, kMost, seed));
    RandomStream random(seed, RandomPurpose::kSampleData, 4);
    const std::string folder = StrCat("elastic", seed);
    std::atomic<bool> done = false;
    std::vector<std::jthread> threads;
    for (int rank = 1; rank < kMost; ++rank) {
      const int lives = 1 + static_cast<int>(random.Below(8));
      threads.emplace_back([&, rank, lives] {
        // Some workers start late.
        std::this_thread::sleep_for(std::chrono::milliseconds(rank * static_cast<int>(seed % 4)));
        RunRank(cluster, rank, spec, folder, lives).IgnoreError();
      });
    }
    threads.emplace_back([&] {
      // Kills workers at random times too, not only after steps.
      for (int deaths = 0; !done && deaths < 4; ++deaths) {
        std::this_thread::sleep_for(std::chrono::microseconds(random.Below(20'000)));
        cluster.Kill(1 + static_cast<int>(random.Below(kMost - 1)));
      }
    });
    const auto result = RunRank(cluster, 0, chief, folder, 1000);
    done = true;
    ASSERT_TRUE(result.ok()) << result.status() << " seed " << seed;
    ASSERT_TRUE(result->records);
    EXPECT_EQ(*result->records, RecordCounts{.trained = 20 * 300}) << "seed " << seed;
    changes += static_cast<int>(result->changes.size());
  }
  EXPECT_GT(changes, 5) << "too few replicas left or joined";
}

// Kills the rank after the first step in which it takes part.
class DieAtOnce : public Hook {
 public:
  DieAtOnce(TestCluster& cluster, int rank, std::atomic<bool>& dead)
      : cluster_(cluster), rank_(rank), dead_(dead) {}
  absl::Status AfterRun(Session&, const StepValues&) override {
    cluster_.Kill(rank_);
    dead_ = true;
    return absl::InternalError("killed by the test");
  }

 private:
  TestCluster& cluster_;
  const int rank_;
  std::atomic<bool>& dead_;
};

class StopWhen : public Hook {
 public:
  explicit StopWhen(const std::atomic<bool>& when) : when_(when) {}
  absl::Status AfterRun(Session& session, const StepValues& values) override {
    if (when_ && values.rows <= 16) session.RequestStop("");  // the batch of one replica
    return absl::OkStatus();
  }

 private:
  const std::atomic<bool>& when_;
};

// Sets a flag after some steps, and ends the training after a step with all replicas.
class StopAfterAJoin : public Hook {
 public:
  StopAfterAJoin(int64_t steps, std::atomic<bool>& trains) : steps_(steps), trains_(trains) {}
  absl::Status AfterRun(Session& session, const StepValues& values) override {
    if (session.step >= steps_) {
      trains_ = true;
      trains_.notify_all();
    }
    if (values.rows > 2 * 16) session.RequestStop("");  // the batches of two replicas
    return absl::OkStatus();
  }

 private:
  const int64_t steps_;
  std::atomic<bool>& trains_;
};

// Replicas that train end their step before they let another one in: none needs the state of
// another.
TEST_F(ElasticTrainingTest, AJoinMovesTheStateOnlyToTheNewcomer) {
  TrainSpec spec = Elastic();
  spec.input.reader.epochs = 0;
  for (int round = 0; round < 20; ++round) {
    TestCluster cluster(kMost, /*fewest=*/2, /*patience=*/std::chrono::seconds(5));
    std::atomic<bool> trains = false;
    TrainSpec chief = spec;
    chief.hooks = {std::make_shared<StopAfterAJoin>(3 + round, trains)};
    const std::string folder = StrCat("join", round);
    std::jthread other([&] { RunRank(cluster, 1, spec, folder, 1).IgnoreError(); });
    std::jthread late([&] {
      trains.wait(false);
      RunRank(cluster, 2, spec, folder, 1).IgnoreError();
    });
    const auto result = RunRank(cluster, 0, chief, folder, 1);
    trains = true;
    trains.notify_all();
    if (!result.ok()) {
      for (const int rank : {1, 2}) cluster.Kill(rank);  // they would wait for it
    }
    ASSERT_TRUE(result.ok()) << result.status();
    other.join();
    late.join();
    EXPECT_EQ(cluster.joins(), 1) << "round " << round;
    EXPECT_EQ(cluster.behind(), 0) << "round " << round;
  }
}

TEST_F(ElasticTrainingTest, TheResultNamesReplicasThatJoinedAndLeft) {
  TestCluster cluster(2, 1);
  std::atomic<bool> dead = false;
  TrainSpec chief = Elastic();
  chief.shards = GetShardCount(1, 2);
  chief.input.reader.epochs = 0;
  TrainSpec worker = chief;
  chief.hooks = {std::make_shared<StopWhen>(dead)};
  worker.hooks = {std::make_shared<DieAtOnce>(cluster, 1, dead)};
  std::jthread other([&] { RunRank(cluster, 1, worker, "model", 1).IgnoreError(); });
  const auto result = RunRank(cluster, 0, chief, "model", 1);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->changes, Contains(AllOf(HasSubstr(" left at step "), HasSubstr("closed"),
                                              HasSubstr(": 1 replica"))));
}

TEST_F(ElasticTrainingTest, ACheckpointIsContinuedByAnyNumberOfReplicas) {
  TrainSpec spec = Elastic();
  spec.max_steps = 50;
  {
    TestCluster cluster(kMost, kFewest);
    std::vector<std::jthread> threads;
    for (int rank = 1; rank < kMost; ++rank) {
      threads.emplace_back([&, rank] { RunRank(cluster, rank, spec, "model", 1).IgnoreError(); });
    }
    ASSERT_TRUE(RunRank(cluster, 0, spec, "model", 1).ok());
  }
  spec.max_steps.reset();
  TestCluster alone(kMost, kFewest);
  const auto result = RunRank(alone, 0, spec, "model", 1);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(*result->records, RecordCounts{.trained = 20 * 300});
  // With another number of shards the training cannot continue, and the error says so.
  TrainSpec other = spec;
  other.shards = 4;
  TestCluster again(kMost, kFewest);
  const auto refused = RunRank(again, 0, other, "model", 1);
  EXPECT_THAT(ToStd(refused.status().message()), HasSubstr("--fresh-data"));
}

TEST_F(ElasticTrainingTest, RecordsOfDroppedBatchesAreCounted) {
  TrainSpec spec = Training();
  spec.input.reader.drop_remainder = true;  // drops 12 of the 300 rows in each epoch
  auto result = Train("alone", spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(*result->records, (RecordCounts{.trained = 3 * 288, .dropped = 3 * 12}));
  // The last dropped records count once, even if a later training continues with the same data.
  spec.input.reader.epochs = 4;
  result = Train("alone", spec);
  EXPECT_EQ(*result->records, (RecordCounts{.trained = 4 * 288, .dropped = 4 * 12}));
  spec.shards = GetShardCount(kFewest, kMost);
  spec.input.source.shard.by = data::ShardBy::kRecord;
  TestCluster cluster(kMost, kFewest);
  result = RunRank(cluster, 0, spec, "shards", 1);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(*result->records, (RecordCounts{.trained = 4 * 6 * 48, .dropped = 4 * 6 * 2}));
}

}  // namespace
}  // namespace muster::train
