// Trains by parameter servers; no death may change the results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "muster/train/allreduce/cluster_replicas.h"
#include "muster/train/parameter_server/ps_training_test_support.h"

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

TEST_F(PsTrainingTest, SynchronousTrainingEqualsAllReduce) {
  // Adam moves every row of its tables at every step.
  for (const auto& [name, yaml] :
       {std::pair("adagrad", std::string(kTestSpec)),
        std::pair("adam", WithOptimizer("{adam: {learning_rate: 0.01}}"))}) {
    for (const int replicas : {1, 3}) {
      const std::string wanted = StrCat("allreduce-", name, replicas);
      TrainByAllReduce(replicas, Training(), wanted, yaml);
      for (const int servers : {1, 2}) {
        const std::string folder = StrCat("served-", name, replicas, "-", servers);
        TrainWithPs({.replicas = replicas, .servers = servers}, Training(), folder, yaml);
        ExpectSame(folder, wanted, 1e-6f);
      }
    }
  }
}

TEST_F(PsTrainingTest, OneAsynchronousReplicaDoesWhatOneProcessDoes) {
  ASSERT_TRUE(Train("alone", Training()).ok());
  TrainWithPs({.synchronous = false, .replicas = 1, .servers = 2}, Training(), "served");
  ExpectSame("served", "alone", 1e-6f);
}

TEST_F(PsTrainingTest, AsynchronousTrainsOnEveryBatchOnceAndLearns) {
  TrainSpec spec = Training();
  spec.input.reader.epochs = 10;
  const Shape shape = {.synchronous = false, .replicas = 3, .servers = 2};
  TestServers servers(shape, kTestSpec);
  const auto results = RunAll(shape, servers, spec, "served", kTestSpec, {});
  for (const auto& result : results) ASSERT_TRUE(result.ok()) << result.status();
  // The chief's counts contain all replicas' rows.
  EXPECT_EQ(results[0]->examples, 3000u);
  EXPECT_EQ(results[0]->records, (RecordCounts{.trained = 3000}));
  // Each replica has 100 rows in batches of 16, 10 times.
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
  // How stale gradients are depends on the machine's load; the model must learn in any case.
  EXPECT_GT(auc.at("alone"), 0.85);
  EXPECT_GT(auc.at("served"), 0.75);
}

TEST_F(PsTrainingTest, SynchronousRunsAreReproducibleAndResumeWithOtherServers) {
  TrainWithPs({.replicas = 3, .servers = 1}, Training(), "whole");
  TrainWithPs({.replicas = 3, .servers = 1}, Training(), "again");
  ExpectSame("again", "whole", 0);
  TrainSpec first = Training();
  first.max_steps = 7;
  TrainWithPs({.replicas = 3, .servers = 2}, first, "cut");
  TrainWithPs({.replicas = 3, .servers = 3}, Training(), "cut");
  ExpectSame("cut", "whole", 1e-6f);
}

// Kills a server, and requests a save, between a step and the save that follows it.
class KillBeforeSave : public Hook {
 public:
  explicit KillBeforeSave(std::function<void()> kill) : kill_(std::move(kill)) {}
  absl::Status Begin(Session&) override {
    ++begins;
    return absl::OkStatus();
  }
  absl::Status AfterRun(Session& session, const StepValues&) override {
    if (session.step != 9 || killed_) return absl::OkStatus();
    killed_ = session.checkpoint.requested = true;
    kill_();
    return absl::OkStatus();
  }
  int begins = 0;

 private:
  const std::function<void()> kill_;
  bool killed_ = false;
};

TEST_F(PsTrainingTest, AServerThatIsLostDuringASaveDoesNotEndTheChief) {
  TrainWithPs({.replicas = 1, .servers = 2}, Training(), "whole");
  for (const int killed : {0, 1}) {
    for (const bool synchronous : {true, false}) {
      const Shape shape = {.synchronous = synchronous, .replicas = 1, .servers = 2};
      TestServers servers(shape, kTestSpec);
      const auto hook = std::make_shared<KillBeforeSave>([&] { servers.Kill(killed); });
      TrainSpec spec = Training();
      spec.hooks.push_back(hook);
      const std::string folder = StrCat("killed", killed, synchronous);
      TrainWithPs(shape, servers, spec, folder, kTestSpec, {});
      EXPECT_EQ(hook->begins, 1) << "the chief was started again";
      ExpectSame(folder, "whole", synchronous ? 0 : 1e-6f);
    }
  }
}

TEST_F(PsTrainingTest, AnotherNumberOfReplicasIsAnError) {
  TrainSpec first = Training();
  first.max_steps = 3;
  TrainWithPs({.replicas = 2, .servers = 1}, first, "model");
  const Shape shape = {.replicas = 1, .servers = 1};
  TestServers servers(shape, kTestSpec);
  const auto results = RunAll(shape, servers, Training(), "model", kTestSpec, {});
  EXPECT_THAT(ToStd(results[0].status().message()),
              AllOf(HasSubstr("2 replicas"), HasSubstr("--fresh-data")));
}

TEST_F(PsTrainingTest, ASumIsClippedByANormAsInAllReduce) {
  TrainByAllReduce(3, Training(), "unclipped", std::string(kTestSpec));
  for (const char* const clip : {"norm: 0.02", "global_norm: 0.05"}) {
    const std::string yaml = WithClip(clip), wanted = StrCat("allreduce-", clip);
    TrainByAllReduce(3, Training(), wanted, yaml);
    EXPECT_NE(Weights(wanted), Weights("unclipped")) << clip;
    for (const int servers : {1, 2, 3}) {
      const std::string folder = StrCat("served-", clip, servers);
      TrainWithPs({.replicas = 3, .servers = servers}, Training(), folder, yaml);
      ExpectSame(folder, wanted, 1e-6f);
    }
  }
}

TEST_F(PsTrainingTest, ATerminatedServerEndsIfNoReplicaIsConnected) {
  TestServers servers({.servers = 1}, kTestSpec);
  const auto model = model::BuildModel(model::ParseModelSpec(*files_, kTestSpec, "s").value());
  PsCluster cluster = servers.Cluster({job::TaskType::kPs, 0});
  cluster.servers[0].path += "-another";
  const std::atomic<bool> stop = true;
  cluster.context.stop = &stop;
  const absl::Status left = ServeParameters(*model, cluster, net::Token::Make().value());
  EXPECT_EQ(left.code(), absl::StatusCode::kCancelled) << left;
}

// Replica 1 delays its sixth batch until replica 0 has done as many batches as the bound allows.
TEST_F(PsTrainingTest, NoReplicaExceedsTheBoundOnStaleness) {
  for (const int64_t bound : {0, 3}) {
    const Shape shape = {.synchronous = false, .replicas = 2, .servers = 2, .staleness = bound};
    std::mutex mutex;
    std::condition_variable changed;
    std::array<int64_t, 2> done = {0, 0};  // a lower bound; at most one more is done
    int64_t furthest = 0;
    TrainWithPs(shape, Training(), StrCat("model", bound), kTestSpec,
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

TEST_F(PsTrainingTest, BoundedTrainingContinuesWhenAReplicaIsKilled) {
  const Shape shape = {.synchronous = false, .replicas = 3, .servers = 2, .staleness = 1};
  std::atomic<int> killed = 0;
  TrainWithPs(shape, Training(), "model", kTestSpec, [&](int rank, Session& session) {
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

TEST_F(PsTrainingTest, TheChiefWaitsForItsEvaluatorAndTheServersForBoth) {
  TestServers servers({.replicas = 1, .servers = 2}, kTestSpec);
  PsCluster cluster = servers.Cluster({job::TaskType::kChief, 0});
  auto host =
      HostEvaluator({.context = {.job = "test", .self = cluster.context.self, .incarnation = 1},
                     .address = servers.evaluators()},
                    servers.key(), clock_);
  ASSERT_TRUE(host.ok()) << host.status();
  const auto peers = NewPsPeers(std::move(cluster), servers.key(), *std::move(host));
  EXPECT_TRUE(peers->has_evaluator());
  std::atomic<bool> evaluated = false;
  std::jthread chief([&] {
    const absl::Status left = peers->Leave();
    EXPECT_TRUE(left.ok()) << left;
    EXPECT_TRUE(evaluated);
  });
  const auto watch = [&](int64_t incarnation) {
    ClusterSpec spec;  // field by field: g++ 12 warns of Protection in an initialiser
    spec.context.job = "test";
    spec.context.self = {job::TaskType::kEvaluator, 0};
    spec.context.incarnation = incarnation;
    spec.tasks = {{{job::TaskType::kChief, 0}, servers.evaluators()}};
    return WatchCluster(std::move(spec), servers.key()).value();
  };
  // The first evaluator dies in the middle of the evaluation.
  EXPECT_TRUE(watch(1)->AwaitEnd(60).value());
  const auto second = watch(2);
  EXPECT_TRUE(second->AwaitEnd(60).value());
  evaluated = true;
  EXPECT_TRUE(second->Leave().ok());
  chief.join();
  for (const int server : {0, 1}) EXPECT_TRUE(servers.over(server));
}

// Replicas die before steps that are chosen by a seed.
TEST_F(PsTrainingTest, DeathsOfReplicasChangeNoByteInSynchronousTraining) {
  const Shape shape = {.replicas = 3, .servers = 2};
  const std::string clipped = WithClip("global_norm: 0.05");
  TrainWithPs(shape, Training(), "unbroken");
  TrainWithPs(shape, Training(), "unbroken-clipped", clipped);
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const std::string yaml = seed % 2 == 0 ? clipped : std::string(kTestSpec);
    std::mutex mutex;
    RandomStream random(seed, RandomPurpose::kSampleData, 1);
    int kills = 0;
    const std::string folder = StrCat("deaths", seed);
    TrainWithPs(shape, Training(), folder, yaml, [&](int, Session&) -> absl::Status {
      const std::lock_guard lock(mutex);
      if (kills >= 6 || random.Below(8) != 0) return absl::OkStatus();
      ++kills;
      return absl::InternalError(kKilled);
    });
    EXPECT_GT(kills, 2) << "seed " << seed;
    ExpectSame(folder, seed % 2 == 0 ? "unbroken-clipped" : "unbroken", 0);
  }
}

TEST_F(PsTrainingTest, DeathsOfServersChangeNoByteInSynchronousTraining) {
  const Shape shape = {.replicas = 2, .servers = 2};
  for (const int run : {0, 1, 2, 3}) {
    const int victim = run % 2;
    const std::string yaml = run < 2 ? std::string(kTestSpec) : WithClip("norm: 0.02");
    const std::string folder = StrCat("lost", run), unbroken = StrCat("unbroken", run);
    TrainWithPs(shape, Training(), unbroken, yaml);
    TestServers servers(shape, yaml);
    std::atomic<int> kills = 0;
    TrainWithPs(shape, servers, Training(), folder, yaml, [&](int rank, Session& session) {
      if (rank == 1 && session.step >= 10 && kills.exchange(1) == 0) {
        servers.Kill(victim);
      }
      return absl::OkStatus();
    });
    EXPECT_EQ(kills, 1);
    ExpectSame(folder, unbroken, 0);
  }
}

TEST_F(PsTrainingTest, AsynchronousTrainingSurvivesReplicasAndServers) {
  const Shape shape = {.synchronous = false, .replicas = 3, .servers = 2};
  TestServers servers(shape, kTestSpec);
  std::atomic<int> killed_server = 0, killed_replica = 0;
  TrainWithPs(shape, servers, Training(), "model", kTestSpec, [&](int rank, Session& session) {
    if (rank == 2 && session.step >= 8 && killed_replica.exchange(1) == 0) {
      return absl::InternalError(kKilled);
    }
    if (rank == 1 && session.step >= 20 && killed_server.exchange(1) == 0) servers.Kill(1);
    return absl::OkStatus();
  });
  EXPECT_EQ(killed_server, 1);
  EXPECT_EQ(killed_replica, 1);
  // Each replica has 100 rows in batches of 16, 3 times, and each batch counts once.
  const auto restored = Weights("model");
  int64_t step = 0;
  std::memcpy(&step, restored.at("global_step").data(), sizeof step);
  EXPECT_EQ(step, 3 * 7 * 3);
}

TEST_F(PsTrainingTest, ALateAsynchronousChiefHasNothingLeftToDo) {
  constexpr int kSteps = 20;
  const Shape shape = {.synchronous = false};
  TestServers servers(shape, kTestSpec);
  TrainSpec spec = Training();
  spec.max_steps = kSteps;
  std::mutex mutex;
  std::condition_variable moved;
  int of_chief = 0, of_worker = 0;
  after_ = [&](int rank, const StepValues&) {
    const std::lock_guard lock(mutex);
    ++(rank == 0 ? of_chief : of_worker);
    moved.notify_all();
  };
  const auto results = RunAll(shape, servers, spec, "model", kTestSpec, [&](int rank, Session&) {
    std::unique_lock lock(mutex);
    const bool late = rank != 0 || moved.wait_for(lock, std::chrono::seconds(60),
                                                  [&] { return of_worker == kSteps; });
    return late ? absl::OkStatus() : absl::DeadlineExceededError("the worker does not train");
  });
  ASSERT_TRUE(results[0].ok()) << results[0].status();
  EXPECT_GE(results[0]->step, kSteps);
  // The chief may still have done one step before it knew of the end.
  EXPECT_EQ(results[0]->nothing_left, of_chief == 0);
}

}  // namespace
}  // namespace muster::train
