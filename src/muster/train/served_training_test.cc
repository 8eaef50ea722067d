// Training by parameter servers: what it must give, and that no death changes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <condition_variable>

#include "muster/train/cluster_replicas.h"
#include "muster/train/served_training_test_support.h"

namespace muster::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string WithOptimizer(std::string_view optimizer) {
  std::string spec(kTestSpec);
  constexpr std::string_view kOwn = "{adagrad: {learning_rate: 0.05}}";
  return spec.replace(spec.find(kOwn), kOwn.size(), optimizer);
}

std::string WithClip(std::string_view clip) {
  std::string spec(kTestSpec);
  constexpr std::string_view kType = "  type: wide_deep\n";
  return spec.insert(spec.find(kType) + kType.size(), StrCat("  clip_gradients: {", clip, "}\n"));
}

TEST_F(ServedTrainingTest, SynchronousIsAllReduce) {
  // Adam moves every row of its tables at every step.
  for (const auto& [name, yaml] :
       {std::pair("adagrad", std::string(kTestSpec)),
        std::pair("adam", WithOptimizer("{adam: {learning_rate: 0.01}}"))}) {
    for (const int replicas : {1, 3}) {
      const std::string wanted = StrCat("allreduce-", name, replicas);
      TrainByAllReduce(replicas, Training(), wanted, yaml);
      for (const int servers : {1, 2}) {
        const std::string folder = StrCat("served-", name, replicas, "-", servers);
        TrainServed({.replicas = replicas, .servers = servers}, Training(), folder, yaml);
        ExpectSame(folder, wanted, 1e-6f);
      }
    }
  }
}

TEST_F(ServedTrainingTest, OneAsynchronousReplicaDoesWhatOneProcessDoes) {
  ASSERT_TRUE(Train("alone", Training()).ok());
  TrainServed({.synchronous = false, .replicas = 1, .servers = 2}, Training(), "served");
  ExpectSame("served", "alone", 1e-6f);
}

TEST_F(ServedTrainingTest, AsynchronousTrainsOnEveryBatchOnceAndLearns) {
  TrainSpec spec = Training();
  spec.input.reader.epochs = 10;
  const Shape shape = {.synchronous = false, .replicas = 3, .servers = 2};
  TestServers servers(shape, kTestSpec);
  const auto results = RunAll(shape, servers, spec, "served", kTestSpec, {});
  for (const auto& result : results) ASSERT_TRUE(result.ok()) << result.status();
  // The chief knows of all.
  EXPECT_EQ(results[0]->examples, 3000u);
  EXPECT_EQ(results[0]->records, (RecordCounts{.trained = 3000}));
  // 100 rows each in batches of 16, 10 times.
  EXPECT_EQ(results[0]->step, 3 * 7 * 10);
  ASSERT_TRUE(Train("alone", spec).ok());
  Progress progress(ProgressStyle::kNone, 2, clock_);
  std::map<std::string, double> auc;
  for (const char* const folder : {"served", "alone"}) {
    const auto result = NewEstimator(kTestSpec, folder)->Evaluate(Evaluation(), progress);
    ASSERT_TRUE(result.ok()) << result.status();
    for (const auto& [name, value] : result->metrics) {
      if (name == "auc") auc[folder] = value;
    }
  }
  // How stale its gradients are depends on the machine's load; what it has learnt still shows.
  EXPECT_GT(auc.at("alone"), 0.85);
  EXPECT_GT(auc.at("served"), 0.75);
}

TEST_F(ServedTrainingTest, SynchronousRunsRepeatAndResumeWithOtherServers) {
  TrainServed({.replicas = 3, .servers = 1}, Training(), "whole");
  TrainServed({.replicas = 3, .servers = 1}, Training(), "again");
  ExpectSame("again", "whole", 0);
  TrainSpec first = Training();
  first.max_steps = 7;
  TrainServed({.replicas = 3, .servers = 2}, first, "cut");
  TrainServed({.replicas = 3, .servers = 3}, Training(), "cut");
  ExpectSame("cut", "whole", 1e-6f);
}

TEST_F(ServedTrainingTest, AnotherNumberOfReplicasIsSaid) {
  TrainSpec first = Training();
  first.max_steps = 3;
  TrainServed({.replicas = 2, .servers = 1}, first, "model");
  const Shape shape = {.replicas = 1, .servers = 1};
  TestServers servers(shape, kTestSpec);
  const auto results = RunAll(shape, servers, Training(), "model", kTestSpec, {});
  EXPECT_THAT(ToStd(results[0].status().message()),
              AllOf(HasSubstr("2 replicas"), HasSubstr("--fresh-data")));
}

TEST_F(ServedTrainingTest, ASumIsClippedByANormAsByAllReduce) {
  TrainByAllReduce(3, Training(), "unclipped", std::string(kTestSpec));
  for (const char* const clip : {"norm: 0.02", "global_norm: 0.05"}) {
    const std::string yaml = WithClip(clip), wanted = StrCat("allreduce-", clip);
    TrainByAllReduce(3, Training(), wanted, yaml);
    EXPECT_NE(Weights(wanted), Weights("unclipped")) << clip;
    for (const int servers : {1, 2, 3}) {
      const std::string folder = StrCat("served-", clip, servers);
      TrainServed({.replicas = 3, .servers = servers}, Training(), folder, yaml);
      ExpectSame(folder, wanted, 1e-6f);
    }
  }
}

TEST_F(ServedTrainingTest, AServerThatIsToldToStopGoesWhenNobodyIsThere) {
  TestServers servers({.servers = 1}, kTestSpec);
  const auto model = model::BuildModel(model::ParseModelSpec(*files_, kTestSpec, "s").value());
  ServedCluster cluster = servers.Cluster({job::TaskType::kPs, 0});
  cluster.servers[0].path += "-another";
  const std::atomic<bool> stop = true;
  cluster.stop = &stop;
  const absl::Status left = ServeParameters(*model, cluster, net::Token::Make().value());
  EXPECT_EQ(left.code(), absl::StatusCode::kCancelled) << left;
}

// Replica 1 holds its sixth batch back until replica 0 has done as many as it may.
TEST_F(ServedTrainingTest, NobodyRunsFurtherAheadThanTheBound) {
  for (const int64_t bound : {0, 3}) {
    const Shape shape = {.synchronous = false, .replicas = 2, .servers = 2, .staleness = bound};
    std::mutex mutex;
    std::condition_variable changed;
    std::array<int64_t, 2> done = {0, 0};  // at least, and one more at most
    int64_t furthest = 0;
    TrainServed(shape, Training(), StrCat("model", bound), kTestSpec,
                [&, steps = std::array<int64_t, 2>{}](int rank, Session&) mutable {
                  std::unique_lock lock(mutex);
                  const auto i = static_cast<size_t>(rank);
                  done[i] = steps[i]++;
                  furthest = std::max(furthest, done[i] - done[1 - i]);
                  changed.notify_all();
                  if (rank == 1 && done[1] == 5) {
                    changed.wait(lock, [&] { return done[0] == 5 + bound + 1; });
                  }
                  return absl::OkStatus();
                });
    EXPECT_LE(furthest, bound + 2) << "bound " << bound;
  }
}

TEST_F(ServedTrainingTest, BoundedTrainingGoesOnWhenAReplicaIsKilled) {
  const Shape shape = {.synchronous = false, .replicas = 3, .servers = 2, .staleness = 1};
  std::atomic<int> killed = 0;
  TrainServed(shape, Training(), "model", kTestSpec, [&](int rank, Session& session) {
    if (rank == 2 && session.step >= 8 && killed.exchange(1) == 0) {
      return absl::InternalError(kKilled);
    }
    return absl::OkStatus();
  });
  EXPECT_EQ(killed, 1);
  const auto restored = Weights("model");
  int64_t step = 0;
  std::memcpy(&step, restored.at("global_step").data(), sizeof step);
  EXPECT_EQ(step, 3 * 7 * 3);
}

TEST_F(ServedTrainingTest, TheChiefWaitsForItsEvaluatorAndTheServersForBoth) {
  TestServers servers({.replicas = 1, .servers = 2}, kTestSpec);
  ServedCluster cluster = servers.Cluster({job::TaskType::kChief, 0});
  auto host = HostEvaluator(
      {.job = "test", .self = cluster.self, .incarnation = 1, .address = servers.evaluators()},
      servers.key(), clock_);
  ASSERT_TRUE(host.ok()) << host.status();
  const auto peers = NewServedPeers(std::move(cluster), servers.key(), *std::move(host));
  EXPECT_TRUE(peers->has_evaluator());
  std::atomic<bool> evaluated = false;
  std::jthread chief([&] {
    const absl::Status left = peers->Leave();
    EXPECT_TRUE(left.ok()) << left;
    EXPECT_TRUE(evaluated);
  });
  const auto watch = [&](int64_t incarnation) {
    ClusterSpec spec = {.job = "test",
                        .self = {job::TaskType::kEvaluator, 0},
                        .incarnation = incarnation,
                        .tasks = {{{job::TaskType::kChief, 0}, servers.evaluators()}}};
    return WatchCluster(std::move(spec), servers.key()).value();
  };
  // The first dies in the midst of the evaluation.
  EXPECT_TRUE(watch(1)->AwaitEnd(60).value());
  const auto second = watch(2);
  EXPECT_TRUE(second->AwaitEnd(60).value());
  evaluated = true;
  EXPECT_TRUE(second->Leave().ok());
  chief.join();
  for (const int server : {0, 1}) EXPECT_TRUE(servers.over(server));
}

// Deaths of replicas before steps drawn by a seed.
TEST_F(ServedTrainingTest, DeathsOfReplicasChangeNoByteInSynchronousTraining) {
  const Shape shape = {.replicas = 3, .servers = 2};
  const std::string clipped = WithClip("global_norm: 0.05");
  TrainServed(shape, Training(), "unbroken");
  TrainServed(shape, Training(), "unbroken-clipped", clipped);
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const std::string yaml = seed % 2 == 0 ? clipped : std::string(kTestSpec);
    std::mutex mutex;
    RandomStream random(seed, RandomPurpose::kSampleData, 1);
    int kills = 0;
    const std::string folder = StrCat("deaths", seed);
    TrainServed(shape, Training(), folder, yaml, [&](int, Session&) -> absl::Status {
      const std::lock_guard lock(mutex);
      if (kills >= 6 || random.Below(8) != 0) return absl::OkStatus();
      ++kills;
      return absl::InternalError(kKilled);
    });
    EXPECT_GT(kills, 2) << "seed " << seed;
    ExpectSame(folder, seed % 2 == 0 ? "unbroken-clipped" : "unbroken", 0);
  }
}

TEST_F(ServedTrainingTest, DeathsOfServersChangeNoByteInSynchronousTraining) {
  const Shape shape = {.replicas = 2, .servers = 2};
  for (const int run : {0, 1, 2, 3}) {
    const int victim = run % 2;
    const std::string yaml = run < 2 ? std::string(kTestSpec) : WithClip("norm: 0.02");
    const std::string folder = StrCat("lost", run), unbroken = StrCat("unbroken", run);
    TrainServed(shape, Training(), unbroken, yaml);
    TestServers servers(shape, yaml);
    std::atomic<int> kills = 0;
    TrainServed(shape, servers, Training(), folder, yaml, [&](int rank, Session& session) {
      if (rank == 1 && session.step >= 10 && kills.exchange(1) == 0) {
        servers.Kill(victim);
      }
      return absl::OkStatus();
    });
    EXPECT_EQ(kills, 1);
    ExpectSame(folder, unbroken, 0);
  }
}

TEST_F(ServedTrainingTest, AsynchronousTrainingSurvivesReplicasAndServers) {
  const Shape shape = {.synchronous = false, .replicas = 3, .servers = 2};
  TestServers servers(shape, kTestSpec);
  std::atomic<int> killed_server = 0, killed_replica = 0;
  TrainServed(shape, servers, Training(), "model", kTestSpec, [&](int rank, Session& session) {
    if (rank == 2 && session.step >= 8 && killed_replica.exchange(1) == 0) {
      return absl::InternalError(kKilled);
    }
    if (rank == 1 && session.step >= 20 && killed_server.exchange(1) == 0) servers.Kill(1);
    return absl::OkStatus();
  });
  EXPECT_EQ(killed_server, 1);
  EXPECT_EQ(killed_replica, 1);
  // 100 rows each in batches of 16, 3 times, each batch counted once.
  const auto restored = Weights("model");
  int64_t step = 0;
  std::memcpy(&step, restored.at("global_step").data(), sizeof step);
  EXPECT_EQ(step, 3 * 7 * 3);
}

}  // namespace
}  // namespace muster::train
