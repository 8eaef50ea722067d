// Replicas train over real sockets: with a disk that stalls, and in processes that are killed.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "muster/io/fault_file_system.h"
#include "muster/io/local_file_system.h"
#include "muster/train/allreduce/cluster_replicas_test_support.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using net::transport::Address;

// Forwards all calls to `inner` and counts the joins.
class CountedReplicas : public Replicas {
 public:
  explicit CountedReplicas(std::unique_ptr<Replicas> inner) : inner_(std::move(inner)) {}
  bool is_chief() const override { return inner_->is_chief(); }
  bool has_evaluator() const override { return inner_->has_evaluator(); }
  absl::StatusOr<ReplicaGeneration> Join(const StateId& state, const absl::Status& why) override {
    ++joins;
    return inner_->Join(state, why);
  }
  absl::Status Leave() override { return inner_->Leave(); }

  int joins = 0;

 private:
  const std::unique_ptr<Replicas> inner_;
};

// The real membership with a short lease, in threads; the chief's disk stalls for longer than the
// lease.
class SlowDiskTest : public TrainingTest {
 protected:
  static constexpr int kRanks = 3;
  static constexpr double kLeaseSeconds = 2;

  // Returns how often all ranks together called Join.
  int TrainTogether(const std::string& folder, io::FaultFileSystem& disk) {
    const net::Token key = net::Token::Make().value();
    std::atomic<int> joins = 0;
    std::atomic<bool> is_noted = false;  // by the chief, that the training has ended
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        CountedReplicas replicas(JoinCluster(GetSpec(rank, folder), key, system_clock_).value());
        RunConfig config = Config(folder);
        config.save_checkpoints_steps = 5;
        const auto model = model::ParseModelSpec(*files_, kTestSpec, "spec.yaml");
        auto estimator = Estimator::Create(rank == 0 ? disk : *files_, clock_, *model, config);
        TrainSpec spec = Training();
        spec.input.source.shard = {.index = rank, .count = kRanks, .by = data::ShardBy::kRecord};
        spec.replicas = &replicas;
        spec.before_others_end = [&] {
          EXPECT_EQ(rank, 0);
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          is_noted = true;
        };
        Progress progress(ProgressStyle::kNone, 2, clock_);
        const auto result = (*estimator)->Train(spec, progress, never_);
        EXPECT_TRUE(result.ok()) << "rank " << rank << ": " << result.status();
        EXPECT_TRUE(is_noted) << "rank " << rank << " has ended before";
        joins += replicas.joins;
      });
    }
    threads.clear();
    return joins;
  }

  static ClusterSpec GetSpec(int rank, const std::string& folder) {
    ClusterSpec spec = {.context = {.job = "test",
                                    .self = GetTask(rank),
                                    .incarnation = 1,
                                    .lease_seconds = kLeaseSeconds}};
    for (int i = 0; i < kRanks; ++i) {
      spec.tasks.push_back({GetTask(i),
                            {.kind = Address::Kind::kUnix,
                             .path = StrCat(testing::TempDir(), "/", getpid(), folder, i)}});
    }
    return spec;
  }

  SystemClock system_clock_;
};

TEST_F(SlowDiskTest, LosesNoReplicaAndChangesNoByte) {
  io::FaultFileSystem fast(*files_), slow(*files_);
  EXPECT_EQ(TrainTogether("fast", fast), kRanks);
  const int64_t syncs = fast.count(io::FileOperation::kSync);
  ASSERT_GT(syncs, 6);
  std::atomic<int> stalls = 0;
  const auto stall = [&] {
    ++stalls;
    // A task that is silent for this long counts as lost.
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(1.5 * kLeaseSeconds);
    std::this_thread::sleep_until(until);
  };
  // Stalls a save in the background while all replicas train, and the last save.
  for (const int64_t n : {syncs / 2, syncs}) {
    slow.StallNth(io::FileOperation::kSync, n, stall);
  }
  EXPECT_EQ(TrainTogether("slow", slow), kRanks) << "a replica was declared lost";
  EXPECT_EQ(stalls, 2);
  EXPECT_EQ(Weights("slow"), Weights("fast"));
}

// One training with one process for each rank; a process that was killed is started again.
class ClusterProcessesTest : public ClusterReplicasTest {
 protected:
  static constexpr int kRanks = 3;

  void SetUp() override { files_ = io::NewLocalFileSystem(); }

  pid_t StartRank(int rank, int64_t incarnation, const std::string& model_dir) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    _exit(TrainRank(rank, incarnation, model_dir) ? 0 : 1);
  }

  bool TrainRank(int rank, int64_t incarnation, const std::string& model_dir) {
    const auto spec = model::ParseModelSpec(*files_, kTestSpec, "spec.yaml");
    RunConfig config;
    config.model_dir = model_dir;
    config.save_checkpoints_steps = 0;
    auto estimator = Estimator::Create(*files_, clock_, *spec, config);
    const auto replicas = Open(Spec(rank, kRanks, incarnation));
    TrainSpec training;
    training.input.source.patterns = {folder_ + "/train.csv"};
    training.input.source.shard = {.index = rank, .count = kRanks, .by = data::ShardBy::kRecord};
    training.input.reader = {.batch_size = 8, .shuffle = true, .seed = 5, .epochs = 40};
    training.replicas = replicas.get();
    Progress progress(ProgressStyle::kNone, 2, clock_);
    const std::atomic<bool> never = false;
    const auto result = (*estimator)->Train(training, progress, never);
    if (!result.ok())
      std::fprintf(stderr, "rank %d: %s\n", rank, result.status().ToString().c_str());
    return result.ok();
  }

  // Kills ranks at random until all have ended well. Returns how many it killed.
  int RunWithKills(uint64_t seed, int kills_wanted, const std::string& model_dir) {
    RandomStream random(seed, RandomPurpose::kSampleData, 2);
    std::vector<pid_t> pids(kRanks);
    std::vector<int64_t> incarnations(kRanks, 1);
    for (int rank = 0; rank < kRanks; ++rank) {
      pids[static_cast<size_t>(rank)] = StartRank(rank, 1, model_dir);
    }
    int kills = 0, running = kRanks;
    while (running > 0) {
      usleep(static_cast<useconds_t>(1000 + random.Below(30'000)));
      const auto victim = static_cast<size_t>(random.Below(kRanks));
      if (kills < kills_wanted && pids[victim] > 0 && kill(pids[victim], SIGKILL) == 0) ++kills;
      for (size_t rank = 0; rank < kRanks; ++rank) {
        int status = 0;
        if (pids[rank] <= 0 || waitpid(pids[rank], &status, WNOHANG) != pids[rank]) continue;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
          pids[rank] = 0;
          --running;
        } else {
          pids[rank] = StartRank(static_cast<int>(rank), ++incarnations[rank], model_dir);
        }
      }
    }
    return kills;
  }

  std::string Newest(const std::string& model_dir) {
    const auto prefix = checkpoint::Latest(*files_, model_dir);
    EXPECT_TRUE(prefix.ok()) << prefix.status();
    return io::ReadFile(*files_, *prefix + ".data-00000-of-00001").value();
  }

  std::unique_ptr<io::FileSystem> files_;
};

TEST_F(ClusterProcessesTest, KilledProcessesChangeNoByte) {
  std::string csv = "id,x,color,y\n";
  RandomStream random(1, RandomPurpose::kSampleData, 0);
  for (int i = 0; i < 600; ++i) {
    const uint64_t bits = random.Below(6);
    csv +=
        StrCat(i, ",", random.Normal(), ",", bits % 3 == 0 ? "red" : "blue", ",", bits / 3, "\n");
  }
  ASSERT_TRUE(io::WriteFileAtomically(*files_, folder_ + "/train.csv", csv).ok());
  EXPECT_EQ(RunWithKills(1, 0, folder_ + "/unbroken"), 0);
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const std::string folder = StrCat(folder_, "/killed", seed);
    EXPECT_GT(RunWithKills(seed, 6, folder), 0);
    EXPECT_TRUE(Newest(folder) == Newest(folder_ + "/unbroken")) << "seed " << seed;
  }
}

}  // namespace
}  // namespace muster::train
