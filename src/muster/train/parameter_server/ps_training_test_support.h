// Shared by the tests of trainings by parameter servers: servers and replicas as threads of one
// process.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "muster/train/allreduce/test_replicas.h"
#include "muster/train/parameter_server/ps_cluster.h"
#include "muster/train/training_test_support.h"

namespace muster::train {

using net::transport::Address;

inline constexpr char kKilled[] = "killed by the test";

struct Shape {
  bool synchronous = true;
  int replicas = 2, servers = 1;
  int64_t staleness = -1;
  int aggregate = 0;
  double rendezvous_seconds = 300;
  // Of the servers: see PsCluster. Servers from number `servers_in_folder` on have no such folder.
  io::FileSystem* files = nullptr;
  std::string model_dir = {};
  int servers_in_folder = 1000;
};

// Parameter servers of one training, which can be killed and started again.
class TestServers {
 public:
  TestServers(const Shape& shape, std::string_view yaml) : shape_(shape) {
    std::string path = testing::TempDir() + "/muster_served_XXXXXX";
    folder_ = mkdtemp(path.data());
    const auto files = io::NewMemoryFileSystem();
    model_ = model::BuildModel(model::ParseModelSpec(*files, yaml, "spec.yaml").value()).value();
    seed_ = model_.spec.train.seed;
    servers_.resize(static_cast<size_t>(shape.servers));
    for (int server = 0; server < shape.servers; ++server) Start(server);
  }
  ~TestServers() {
    servers_.clear();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  PsCluster Cluster(job::TaskId self) const {
    PsCluster cluster = {.context = {.job = "test",
                                     .self = self,
                                     .incarnation = 1,
                                     .rendezvous_seconds = shape_.rendezvous_seconds},
                         .options = {.replicas = shape_.replicas,
                                     .synchronous = shape_.synchronous,
                                     .aggregate = shape_.aggregate,
                                     .staleness = shape_.staleness},
                         .seed = seed_,
                         .model_dir = shape_.model_dir};
    if (self.type == job::TaskType::kPs && self.index < shape_.servers_in_folder) {
      cluster.files = shape_.files;
    }
    for (int i = 0; i < shape_.servers; ++i) {
      cluster.servers.push_back({.kind = Address::Kind::kUnix, .path = StrCat(folder_, "/", i)});
    }
    return cluster;
  }
  // The address on which the chief hosts the membership for an evaluator.
  Address evaluators() const {
    return {.kind = Address::Kind::kUnix, .path = StrCat(folder_, "/evaluators")};
  }
  const net::Token& key() const { return key_; }
  std::unique_ptr<Peers> Replica(int rank, int64_t incarnation) const {
    PsCluster cluster = Cluster(rank == 0 ? job::TaskId{job::TaskType::kChief, 0}
                                          : job::TaskId{job::TaskType::kWorker, rank - 1});
    cluster.context.incarnation = incarnation;
    cluster.replica = rank;
    return NewPsPeers(std::move(cluster), key_);
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
  // Ends a server without starting it again.
  void End(int server) { servers_[static_cast<size_t>(server)].reset(); }
  const model::Model& model() const { return model_; }
  bool over(int server) { return servers_[static_cast<size_t>(server)]->WaitForEnd(60); }

 private:
  const Shape shape_;
  std::string folder_;
  net::Token key_ = net::Token::Make().value();
  model::Model model_;
  uint64_t seed_ = 1;
  std::vector<std::unique_ptr<ParameterServer>> servers_;
};

// Calls back after each step.
class AfterStep : public Hook {
 public:
  explicit AfterStep(std::function<void(const StepValues&)> call) : call_(std::move(call)) {}
  absl::Status AfterRun(Session&, const StepValues& values) override {
    call_(values);
    return absl::OkStatus();
  }

 private:
  const std::function<void(const StepValues&)> call_;
};

// Calls back before each step. An error of the callback ends the replica as a kill would.
class BeforeStep : public Hook {
 public:
  explicit BeforeStep(std::function<absl::Status(Session&)> call) : call_(std::move(call)) {}
  absl::Status BeforeRun(Session& session) override { return call_(session); }

 private:
  const std::function<absl::Status(Session&)> call_;
};

class PsTrainingTest : public TrainingTest {
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
        if (after_) {
          own.hooks.push_back(std::make_shared<AfterStep>(
              [this, rank](const StepValues& values) { after_(rank, values); }));
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

  void TrainWithPs(const Shape& shape, const TrainSpec& spec, const std::string& folder,
                   std::string_view yaml = kTestSpec, const Call& call = {}) {
    TestServers servers(shape, yaml);
    TrainWithPs(shape, servers, spec, folder, yaml, call);
  }
  void TrainWithPs(const Shape& shape, TestServers& servers, const TrainSpec& spec,
                   const std::string& folder, std::string_view yaml, const Call& call) {
    for (const auto& result : RunAll(shape, servers, spec, folder, yaml, call)) {
      ASSERT_TRUE(result.ok()) << result.status();
    }
    for (int server = 0; server < shape.servers; ++server) EXPECT_TRUE(servers.over(server));
  }

  // Returns the chief's result.
  TrainResult TrainByAllReduce(int size, const TrainSpec& spec, const std::string& folder,
                               std::string_view yaml) {
    TestCluster cluster(size);
    TrainResult of_chief;
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        TrainSpec own = spec;
        own.input.source.shard = {.index = rank, .count = size, .by = data::ShardBy::kRecord};
        const auto replicas = cluster.New(rank);
        own.replicas = replicas.get();
        const auto result = Train(folder, own, yaml);
        ASSERT_TRUE(result.ok()) << result.status();
        if (rank == 0) of_chief = *result;
      });
    }
    threads.clear();
    return of_chief;
  }

  std::vector<std::string> List(const std::string& folder) { return files_->List(folder).value(); }

  void ExpectSame(const std::string& folder, const std::string& wanted, float tolerance) {
    const auto weights = Weights(folder), expected = Weights(wanted);
    ASSERT_EQ(weights.size(), expected.size());
    for (const auto& [name, bytes] : expected) {
      ASSERT_TRUE(weights.contains(name)) << name;
      const std::string part = name.substr(name.rfind('/') + 1);
      if (name == "global_step" || part == "keys" || part == "last_steps" ||
          part.starts_with("waiting_")) {
        EXPECT_EQ(weights.at(name), bytes) << name << " of " << folder;
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

  // Called after each step, on the threads of all replicas; may be empty.
  std::function<void(int rank, const StepValues& values)> after_;
};

}  // namespace muster::train
