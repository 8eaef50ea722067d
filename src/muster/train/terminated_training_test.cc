// One task of a training gets SIGTERM: it hands over or saves its state, the others continue or
// wait for its replacement, and the model is the same as without the signal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "muster/train/allreduce/cluster_replicas.h"
#include "muster/train/input/shards.h"
#include "muster/train/parameter_server/ps_training_test_support.h"

namespace muster::train {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr int kStep = 6;  // the step before which the signal comes

// The flags that a signal handler sets.
struct Signals {
  std::atomic<bool> stop = false, leaving = false;
  void Terminate() {
    leaving = true;
    stop = true;
  }
};

// Calls a function at the first end of an epoch, when the loop has read a batch of the next epoch
// and has not yet decided whether to train on it.
class AtEpochEnd : public Hook {
 public:
  explicit AtEpochEnd(std::function<void()> call) : call_(std::move(call)) {}
  absl::Status EndEpoch(Session&) override {
    call_();
    return absl::OkStatus();
  }

 private:
  const std::function<void()> call_;
};

// One rank is told to end. With `while_waiting` this happens in the middle of a step, in which
// another rank keeps it waiting until it has ended; with `after_reading` between the reading of a
// batch and its step.
struct Drill {
  int victim = 0;
  bool while_waiting = false;
  bool after_reading = false;
  bool comes_back = true;
};

class TerminatedTrainingTest : public PsTrainingTest {
 protected:
  using NewPeers =
      std::function<std::unique_ptr<Peers>(int rank, int64_t incarnation, Signals& signals)>;

  // Returns the result of each rank's last incarnation. `drill` null: an unbroken training.
  std::vector<absl::StatusOr<TrainResult>> RunRanks(int size, const TrainSpec& spec,
                                                    const std::string& folder,
                                                    const NewPeers& new_peers, const Drill* drill) {
    std::vector<absl::StatusOr<TrainResult>> results(static_cast<size_t>(size));
    Signals first;  // of the victim's first incarnation
    std::atomic<bool> gone = false;
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        const bool is_victim = drill != nullptr && rank == drill->victim;
        // Whether this rank sends the signal.
        const bool sends =
            drill != nullptr &&
            rank == (drill->while_waiting ? (drill->victim + 1) % size : drill->victim);
        for (int64_t incarnation = 1;; ++incarnation) {
          Signals own;
          Signals& signals = is_victim && incarnation == 1 ? first : own;
          TrainSpec task = spec;
          if (task.shards == 0) {
            task.input.source.shard = {.index = rank, .count = size, .by = data::ShardBy::kRecord};
          }
          if (sends && drill->after_reading) {
            task.hooks.push_back(std::make_shared<AtEpochEnd>([&] {
              if (!first.stop) first.Terminate();
            }));
          } else if (sends) {
            task.hooks.push_back(std::make_shared<BeforeStep>([&](Session& session) {
              if (session.step < kStep || first.stop) return absl::OkStatus();
              first.Terminate();
              if (drill->while_waiting) gone.wait(false);
              return absl::OkStatus();
            }));
          }
          const auto peers = new_peers(rank, incarnation, signals);
          task.replicas = peers.get();
          Progress progress(ProgressStyle::kNone, 2, clock_);
          auto& result = results[static_cast<size_t>(rank)];
          result = NewEstimator(kTestSpec, folder)->Train(task, progress, signals.stop);
          if (!signals.stop) return;
          EXPECT_TRUE(result.ok() && result->interrupted)
              << "rank " << rank << ": " << result.status();
          if (rank == 0 && result.ok()) {
            EXPECT_EQ(GetStep(folder), result->step) << "not saved";
          }
          ++terminated_;
          gone = true;
          gone.notify_all();
          if (!drill->comes_back) return;
        }
      });
    }
    threads.clear();
    return results;
  }

  void ExpectTrained(const std::vector<absl::StatusOr<TrainResult>>& results) {
    for (const auto& result : results) {
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_FALSE(result->interrupted);
    }
  }

  static std::string GetFolder(const Drill& drill) {
    return StrCat("broken", drill.victim, drill.while_waiting, drill.after_reading);
  }

  int64_t GetStep(const std::string& folder) {
    const auto restored = Weights(folder);
    int64_t step = 0;
    std::memcpy(&step, restored.at("global_step").data(), sizeof step);
    return step;
  }

  // Peers that train by all-reduce over real sockets.
  NewPeers Cluster(int size, int fewest = 0) {
    const std::string path = StrCat(testing::TempDir(), "/", getpid(), "-", ++clusters_, "-");
    return [=, this](int rank, int64_t incarnation, Signals& signals) -> std::unique_ptr<Peers> {
      ClusterSpec spec = {.context = {.job = "test", .incarnation = incarnation},
                          .min_replicas = fewest};
      for (int i = 0; i < size; ++i) {
        const job::TaskType type = i == 0 ? job::TaskType::kChief : job::TaskType::kWorker;
        spec.tasks.push_back(
            {{type, i == 0 ? 0 : i - 1}, {.kind = Address::Kind::kUnix, .path = StrCat(path, i)}});
      }
      spec.context.self = spec.tasks[static_cast<size_t>(rank)].id;
      spec.context.stop = &signals.stop;
      spec.context.leaving = &signals.leaving;
      auto joined = JoinCluster(std::move(spec), key_, system_clock_);
      EXPECT_TRUE(joined.ok()) << joined.status();
      return *std::move(joined);
    };
  }

  static NewPeers Served(const TestServers& servers) {
    return [&servers](int rank, int64_t incarnation, Signals& signals) -> std::unique_ptr<Peers> {
      PsCluster cluster =
          servers.Cluster(rank == 0 ? job::TaskId{job::TaskType::kChief, 0}
                                    : job::TaskId{job::TaskType::kWorker, rank - 1});
      cluster.context.incarnation = incarnation;
      cluster.replica = rank;
      cluster.context.stop = &signals.stop;
      cluster.context.leaving = &signals.leaving;
      return NewPsPeers(std::move(cluster), servers.key());
    };
  }

  SystemClock system_clock_;
  const net::Token key_ = net::Token::Make().value();
  std::atomic<int> terminated_ = 0;
  int clusters_ = 0;
};

TEST_F(TerminatedTrainingTest, TerminatingAReplicaChangesNoByte) {
  constexpr int kSize = 3;
  ExpectTrained(RunRanks(kSize, Training(), "unbroken", Cluster(kSize), nullptr));
  for (const Drill& drill :
       {Drill{.victim = 1}, Drill{.victim = 0}, Drill{.victim = 1, .while_waiting = true},
        Drill{.victim = 0, .while_waiting = true}, Drill{.victim = 1, .after_reading = true},
        Drill{.victim = 0, .after_reading = true}}) {
    const std::string folder = GetFolder(drill);
    terminated_ = 0;
    ExpectTrained(RunRanks(kSize, Training(), folder, Cluster(kSize), &drill));
    EXPECT_EQ(terminated_, 1) << folder;
    ExpectSame(folder, "unbroken", 0);
  }
}

TEST_F(TerminatedTrainingTest, TheOthersContinueWithoutATerminatedWorker) {
  constexpr int kSize = 3;
  TrainSpec spec = Training();
  spec.shards = GetShardCount(2, kSize);
  spec.input.source.shard.by = data::ShardBy::kRecord;
  const Drill drill = {.victim = 2, .comes_back = false};
  const auto results = RunRanks(kSize, spec, "model", Cluster(kSize, 2), &drill);
  EXPECT_EQ(terminated_, 1);
  for (const int rank : {0, 1}) {
    const auto& result = results[static_cast<size_t>(rank)];
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_FALSE(result->interrupted);
    EXPECT_EQ(result->records, (RecordCounts{.trained = 900}));
    EXPECT_THAT(result->changes, Contains(HasSubstr("was told to end (SIGTERM)")));
  }
}

TEST_F(TerminatedTrainingTest, TerminatingAReplicaOfParameterServersChangesNoByte) {
  const Shape shape = {.replicas = 2, .servers = 2};
  TrainWithPs(shape, Training(), "unbroken");
  for (const Drill& drill :
       {Drill{.victim = 1}, Drill{.victim = 0}, Drill{.victim = 1, .while_waiting = true},
        Drill{.victim = 0, .while_waiting = true}, Drill{.victim = 1, .after_reading = true},
        Drill{.victim = 0, .after_reading = true}}) {
    const std::string folder = GetFolder(drill);
    TestServers servers(shape, kTestSpec);
    terminated_ = 0;
    ExpectTrained(RunRanks(shape.replicas, Training(), folder, Served(servers), &drill));
    EXPECT_EQ(terminated_, 1) << folder;
    ExpectSame(folder, "unbroken", 0);
    for (const int server : {0, 1}) EXPECT_TRUE(servers.over(server));
  }
}

TEST_F(TerminatedTrainingTest, TerminatingAnAsynchronousReplicaLosesNoRecord) {
  const Shape shape = {.synchronous = false, .replicas = 2, .servers = 2};
  for (const int victim : {0, 1}) {
    const Drill drill = {.victim = victim};
    TestServers servers(shape, kTestSpec);
    terminated_ = 0;
    const auto results =
        RunRanks(shape.replicas, Training(), StrCat("model", victim), Served(servers), &drill);
    ExpectTrained(results);
    EXPECT_EQ(terminated_, 1);
    EXPECT_EQ(results[0]->records, (RecordCounts{.trained = 900}));
  }
}

// SIGTERM to a parameter server, which alone has its part of the weights: the chief saves before
// the server ends.
TEST_F(TerminatedTrainingTest, TerminatingAServerRepeatsNoStep) {
  for (const bool synchronous : {true, false}) {
    const Shape shape = {.synchronous = synchronous, .replicas = 1, .servers = 1};
    TestServers servers(shape, kTestSpec);
    const auto cluster = [&](job::TaskId self, Signals& signals) {
      PsCluster made = servers.Cluster(self);
      made.servers[0].path += "-another";
      made.context.stop = &signals.stop;
      made.context.leaving = &signals.leaving;
      return made;
    };
    const auto model = model::BuildModel(model::ParseModelSpec(*files_, kTestSpec, "s").value());
    Signals first, second, chief;
    std::atomic<bool> gone = false;
    std::jthread serves([&] {
      const auto serve = [&](Signals& signals) {
        return ServeParameters(*model, cluster({job::TaskType::kPs, 0}, signals), servers.key());
      };
      const absl::Status left = serve(first);
      ASSERT_TRUE(absl::IsCancelled(left)) << left;
      gone = true;
      const absl::Status ended = serve(second);
      EXPECT_TRUE(ended.ok()) << ended;
    });
    TrainSpec spec = Training();
    spec.input.reader.epochs = 0;
    spec.max_steps = 1'000'000;
    int since = 0;  // steps since the first server ended
    spec.hooks.push_back(std::make_shared<BeforeStep>([&](Session& session) {
      if (session.step >= kStep) first.Terminate();
      if (gone && ++since > kStep) session.RequestStop("");
      return absl::OkStatus();
    }));
    const auto peers = NewPsPeers(cluster({job::TaskType::kChief, 0}, chief), servers.key());
    spec.replicas = peers.get();
    const auto result = Train(StrCat("served", synchronous), spec);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(gone);
    ASSERT_TRUE(result->records);
    EXPECT_GE(result->records->trained, 16 * kStep);
    EXPECT_EQ(result->records->repeated, 0);
  }
}

}  // namespace
}  // namespace muster::train
