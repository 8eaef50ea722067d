// Training by parameter servers: what it must give, and that no death changes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <condition_variable>
#include <filesystem>
#include <thread>

#include "muster/train/cluster_replicas.h"
#include "muster/train/served_cluster.h"
#include "muster/train/test_replicas.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using net::transport::Address;
using testing::AllOf;
using testing::HasSubstr;

constexpr char kKilled[] = "killed by the test";

struct Shape {
  bool synchronous = true;
  int replicas = 2, servers = 1;
  int64_t staleness = -1;
};

// Parameter servers of one training, which can be killed and started again.
class TestServers {
 public:
  TestServers(const Shape& shape, std::string_view yaml) : shape_(shape) {
    std::string path = testing::TempDir() + "/muster_served_XXXXXX";
    folder_ = mkdtemp(path.data());
    const auto files = io::NewMemoryFileSystem();
    model_ = model::BuildModel(model::ParseModelSpec(*files, yaml, "spec.yaml").value()).value();
    servers_.resize(static_cast<size_t>(shape.servers));
    for (int server = 0; server < shape.servers; ++server) Start(server);
  }
  ~TestServers() {
    servers_.clear();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  ServedCluster Cluster(job::TaskId self) const {
    ServedCluster cluster = {.job = "test",
                             .self = self,
                             .incarnation = 1,
                             .synchronous = shape_.synchronous,
                             .staleness = shape_.staleness,
                             .replicas = shape_.replicas};
    for (int i = 0; i < shape_.servers; ++i) {
      cluster.servers.push_back({.kind = Address::Kind::kUnix, .path = StrCat(folder_, "/", i)});
    }
    return cluster;
  }
  // Where the chief's evaluator hears of it.
  Address evaluators() const {
    return {.kind = Address::Kind::kUnix, .path = StrCat(folder_, "/evaluators")};
  }
  const net::Token& key() const { return key_; }
  std::unique_ptr<Peers> Replica(int rank, int64_t incarnation) const {
    ServedCluster cluster = Cluster(rank == 0 ? job::TaskId{job::TaskType::kChief, 0}
                                              : job::TaskId{job::TaskType::kWorker, rank - 1});
    cluster.incarnation = incarnation;
    cluster.replica = rank;
    return NewServedPeers(std::move(cluster), key_);
  }

  void Start(int server) {
    auto started = StartParameterServer(model_, Cluster({job::TaskType::kPs, server}), key_);
    ASSERT_TRUE(started.ok()) << started.status();
    servers_[static_cast<size_t>(server)] = *std::move(started);
  }
  void Kill(int server) {
    servers_[static_cast<size_t>(server)].reset();
    Start(server);
  }
  bool over(int server) { return servers_[static_cast<size_t>(server)]->WaitForEnd(60); }

 private:
  const Shape shape_;
  std::string folder_;
  net::Token key_ = net::Token::Make().value();
  model::Model model_;
  std::vector<std::unique_ptr<ParameterServer>> servers_;
};

// Calls back before each step; an error of it ends the replica as a kill would.
class BeforeStep : public Hook {
 public:
  explicit BeforeStep(std::function<absl::Status(Session&)> call) : call_(std::move(call)) {}
  absl::Status BeforeRun(Session& session) override { return call_(session); }

 private:
  const std::function<absl::Status(Session&)> call_;
};

class ServedTrainingTest : public TrainingTest {
 protected:
  using Call = std::function<absl::Status(int rank, Session&)>;

  std::vector<absl::StatusOr<TrainResult>> RunAll(const Shape& shape, TestServers& servers,
                                                  const TrainSpec& spec, const std::string& folder,
                                                  std::string_view yaml, const Call& call) {
    std::vector<absl::StatusOr<TrainResult>> results(static_cast<size_t>(shape.replicas));
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < shape.replicas; ++rank) {
      threads.emplace_back([&, rank] {
        TrainSpec own = spec;
        own.input.source.shard = {
            .index = rank, .count = shape.replicas, .by = data::ShardBy::kRecord};
        if (call) {
          own.hooks.push_back(
              std::make_shared<BeforeStep>([&, rank](Session& s) { return call(rank, s); }));
        }
        auto& result = results[static_cast<size_t>(rank)];
        int64_t incarnation = 0;
        do {
          const auto peers = servers.Replica(rank, ++incarnation);
          own.replicas = peers.get();
          result = Train(folder, own, yaml);
          // A task that could not save, or was killed, is started again.
        } while (result.status().message() == kKilled || absl::IsUnavailable(result.status()));
      });
    }
    threads.clear();
    return results;
  }

  void TrainServed(const Shape& shape, const TrainSpec& spec, const std::string& folder,
                   std::string_view yaml = kTestSpec, const Call& call = {}) {
    TestServers servers(shape, yaml);
    TrainServed(shape, servers, spec, folder, yaml, call);
  }
  void TrainServed(const Shape& shape, TestServers& servers, const TrainSpec& spec,
                   const std::string& folder, std::string_view yaml, const Call& call) {
    for (const auto& result : RunAll(shape, servers, spec, folder, yaml, call)) {
      ASSERT_TRUE(result.ok()) << result.status();
    }
    for (int server = 0; server < shape.servers; ++server) EXPECT_TRUE(servers.over(server));
  }

  void TrainByAllReduce(int size, const TrainSpec& spec, const std::string& folder,
                        std::string_view yaml) {
    TestCluster cluster(size);
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        TrainSpec own = spec;
        own.input.source.shard = {.index = rank, .count = size, .by = data::ShardBy::kRecord};
        const auto replicas = cluster.New(rank);
        own.replicas = replicas.get();
        const auto result = Train(folder, own, yaml);
        ASSERT_TRUE(result.ok()) << result.status();
      });
    }
  }

  void ExpectSame(const std::string& folder, const std::string& wanted, float tolerance) {
    const auto weights = Weights(folder), expected = Weights(wanted);
    ASSERT_EQ(weights.size(), expected.size());
    for (const auto& [name, bytes] : expected) {
      ASSERT_TRUE(weights.contains(name)) << name;
      if (name == "global_step") {
        EXPECT_EQ(weights.at(name), bytes);
        continue;
      }
      const auto got = Floats(weights.at(name)), want = Floats(bytes);
      ASSERT_EQ(got.size(), want.size()) << name;
      float largest = 0, difference = 0;
      for (size_t i = 0; i < want.size(); ++i) {
        largest = std::max(largest, std::abs(want[i]));
        difference = std::max(difference, std::abs(got[i] - want[i]));
      }
      EXPECT_LE(difference, tolerance * largest) << name << " of " << folder;
    }
  }
  static std::vector<float> Floats(const std::string& bytes) {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    return values;
  }
};

std::string WithOptimizer(std::string_view optimizer) {
  std::string spec(kTestSpec);
  constexpr std::string_view kOwn = "{adagrad: {learning_rate: 0.05}}";
  return spec.replace(spec.find(kOwn), kOwn.size(), optimizer);
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
  uint64_t examples = 0;
  for (const auto& result : results) {
    ASSERT_TRUE(result.ok()) << result.status();
    examples += result->examples;
  }
  EXPECT_EQ(examples, 3000u);
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

TEST_F(ServedTrainingTest, NormClippingInSynchronousTrainingIsRefused) {
  std::string yaml(kTestSpec);
  constexpr std::string_view kType = "  type: wide_deep\n";
  yaml.insert(yaml.find(kType) + kType.size(), "  clip_gradients: {global_norm: 1}\n");
  const auto model = model::BuildModel(model::ParseModelSpec(*files_, yaml, "spec.yaml").value());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(ToStd(ServedVariables(*model, true).status().message()), HasSubstr("allreduce"));
  EXPECT_TRUE(ServedVariables(*model, false).ok());
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
  TrainServed(shape, Training(), "unbroken");
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    std::mutex mutex;
    RandomStream random(seed, RandomPurpose::kSampleData, 1);
    int kills = 0;
    const std::string folder = StrCat("deaths", seed);
    TrainServed(shape, Training(), folder, kTestSpec, [&](int, Session&) -> absl::Status {
      const std::lock_guard lock(mutex);
      if (kills >= 6 || random.Below(8) != 0) return absl::OkStatus();
      ++kills;
      return absl::InternalError(kKilled);
    });
    EXPECT_GT(kills, 2) << "seed " << seed;
    ExpectSame(folder, "unbroken", 0);
  }
}

TEST_F(ServedTrainingTest, DeathsOfServersChangeNoByteInSynchronousTraining) {
  const Shape shape = {.replicas = 2, .servers = 2};
  TrainServed(shape, Training(), "unbroken");
  for (const int victim : {0, 1}) {
    const std::string folder = StrCat("lost", victim);
    TestServers servers(shape, kTestSpec);
    std::atomic<int> kills = 0;
    TrainServed(shape, servers, Training(), folder, kTestSpec, [&](int rank, Session& session) {
      if (rank == 1 && session.step >= 10 && kills.exchange(1) == 0) {
        servers.Kill(victim);
      }
      return absl::OkStatus();
    });
    EXPECT_EQ(kills, 1);
    ExpectSame(folder, "unbroken", 0);
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
