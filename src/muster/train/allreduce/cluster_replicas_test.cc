// The replicas of a cluster over real sockets: in threads, and in processes that are killed.
#include "muster/train/allreduce/cluster_replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "muster/collective/collectives.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/local_file_system.h"
#include "muster/net/transport/listener.h"
#include "muster/net/transport/local_address.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using net::transport::Address;
using testing::AllOf;
using testing::HasSubstr;

constexpr job::TaskId kChief = {job::TaskType::kChief, 0};

job::TaskId GetTask(int rank) {
  return rank == 0 ? kChief : job::TaskId{job::TaskType::kWorker, rank - 1};
}

class ClusterReplicasTest : public testing::Test {
 protected:
  ClusterReplicasTest() {
    std::string path = testing::TempDir() + "/muster_cluster_XXXXXX";
    folder_ = mkdtemp(path.data());
  }
  ~ClusterReplicasTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  ClusterSpec Spec(int rank, int size, int64_t incarnation = 1) const {
    ClusterSpec spec = {
        .context = {.job = "test", .self = GetTask(rank), .incarnation = incarnation}};
    for (int i = 0; i < size; ++i) {
      spec.tasks.push_back(
          {GetTask(i), {.kind = Address::Kind::kUnix, .path = StrCat(folder_, "/", i)}});
    }
    return spec;
  }
  std::unique_ptr<Replicas> Open(ClusterSpec spec) const {
    auto replicas = JoinCluster(std::move(spec), key_, clock_);
    EXPECT_TRUE(replicas.ok()) << replicas.status();
    return *std::move(replicas);
  }

  static absl::Status SumOnes(ReplicaGeneration& generation, float expected) {
    std::vector<float> values(1000, 1);
    MUSTER_RETURN_IF_ERROR(collective::AllReduce(*generation.group, values));
    EXPECT_EQ(values[999], expected);
    return absl::OkStatus();
  }

  std::string folder_;
  SystemClock clock_;
  net::Token key_ = net::Token::Make().value();
};

TEST_F(ClusterReplicasTest, ReplicasConnectTrainAndEnd) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      const auto replicas = Open(Spec(rank, 3));
      auto generation = replicas->Join({.step = rank == 0 ? 7 : -1}, absl::OkStatus());
      ASSERT_TRUE(generation.ok()) << generation.status();
      EXPECT_EQ(generation->group->rank(), rank);
      EXPECT_THAT(generation->states,
                  testing::ElementsAre(StateId{.step = 7}, StateId(), StateId()));
      EXPECT_TRUE(SumOnes(*generation, 3).ok());
      // The chief ends the training for all.
      EXPECT_TRUE(collective::Barrier(*generation->group).ok());
      EXPECT_TRUE(replicas->Leave().ok());
      const absl::Status late = replicas->Join({.step = 8}, absl::OkStatus()).status();
      EXPECT_EQ(late.code(), absl::StatusCode::kCancelled) << late;
    });
  }
}

TEST_F(ClusterReplicasTest, ReplicasOnOneMachineUseSharedMemory) {
  const auto shares = [] {
    std::ifstream maps("/proc/self/maps");
    return std::string(std::istreambuf_iterator(maps), {}).find("muster-ring") != std::string::npos;
  };
  EXPECT_FALSE(shares());
  {
    const auto chief = Open(Spec(0, 2)), worker = Open(Spec(1, 2));
    absl::StatusOr<ReplicaGeneration> one, other;
    std::thread joins([&] { other = worker->Join({.step = -1}, absl::OkStatus()); });
    one = chief->Join({.step = 0}, absl::OkStatus());
    joins.join();
    ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
    EXPECT_TRUE(shares());
  }
  EXPECT_FALSE(shares());
}

// A process that cannot make shared memory notes this and continues over its ordinary address.
TEST_F(ClusterReplicasTest, WithoutSharedMemoryReplicasUseTheAddress) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit none = {.rlim_cur = 4096, .rlim_max = 4096};  // shared memory is a file too
    setrlimit(RLIMIT_FSIZE, &none);
    std::string notes;
    ClusterSpec spec = Spec(1, 2);
    spec.context.note = [&](const std::string& text) { notes += text + "\n"; };
    const auto replicas = Open(std::move(spec));
    auto generation = replicas->Join({.step = -1}, absl::OkStatus());
    const bool summed = generation.ok() && SumOnes(*generation, 2).ok();
    const bool said = notes.find("chief-0 is on this machine, but ") != std::string::npos &&
                      notes.find("; continuing over unix:") != std::string::npos;
    if (!said) std::fprintf(stderr, "notes: %s\n", notes.c_str());
    _exit(summed && said ? 0 : 1);
  }
  const auto chief = Open(Spec(0, 2));
  auto generation = chief->Join({.step = 0}, absl::OkStatus());
  ASSERT_TRUE(generation.ok()) << generation.status();
  EXPECT_TRUE(SumOnes(*generation, 2).ok());
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(ClusterReplicasTest, AnotherModelOrKeyIsRefusedByName) {
  ClusterSpec first = Spec(0, 2);
  first.context.agreement = "model 1";
  std::atomic<bool> stop = false;
  first.context.stop = &stop;
  std::mutex mutex;
  std::vector<std::string> notes;
  first.context.note = [&](const std::string& text) {
    const std::lock_guard lock(mutex);
    notes.push_back(text);
  };
  const auto chief = Open(std::move(first));
  std::jthread joins([&] { chief->Join({.step = 0}, absl::OkStatus()).IgnoreError(); });
  ClusterSpec other = Spec(1, 2);
  other.context.agreement = "model 2";
  const absl::Status refused =
      Open(std::move(other))->Join({.step = -1}, absl::OkStatus()).status();
  EXPECT_THAT(ToStd(refused.message()),
              AllOf(HasSubstr("worker-0 has [model 2]"), HasSubstr("chief-0 has [model 1]")));
  {
    const std::lock_guard lock(mutex);
    EXPECT_THAT(notes, testing::Contains(HasSubstr("refused worker-0: worker-0 has [model 2]")));
  }
  {
    const auto stranger = JoinCluster(Spec(1, 2), net::Token::Make().value(), clock_);
    ASSERT_TRUE(stranger.ok());
    const absl::Status locked_out = (*stranger)->Join({.step = -1}, absl::OkStatus()).status();
    EXPECT_EQ(locked_out.code(), absl::StatusCode::kUnauthenticated) << locked_out;
  }
  // A task with the right key and agreement is admitted. It ends at once; the chief may then wait
  // for another one.
  ClusterSpec right = Spec(1, 2);
  right.context.agreement = "model 1";
  EXPECT_TRUE(Open(std::move(right))->Join({.step = -1}, absl::OkStatus()).ok());
  stop = true;
}

TEST_F(ClusterReplicasTest, TheChiefWaitsForItsEvaluatorAndTheOthersForTheChief) {
  const auto with_evaluator = [&](int rank) {
    ClusterSpec spec = Spec(rank, 2);
    spec.evaluator = true;
    return spec;
  };
  const auto watch = [&](int64_t incarnation) {
    ClusterSpec spec = Spec(0, 2, incarnation);
    spec.context.self = {job::TaskType::kEvaluator, 0};
    return WatchCluster(std::move(spec), key_).value();
  };
  std::atomic<bool> evaluated = false;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto replicas = Open(with_evaluator(rank));
      EXPECT_TRUE(replicas->has_evaluator());
      const auto generation = replicas->Join({.step = 0}, absl::OkStatus());
      ASSERT_TRUE(generation.ok()) << generation.status();
      const absl::Status left = replicas->Leave();
      EXPECT_TRUE(left.ok()) << left;
      EXPECT_TRUE(evaluated);
    });
  }
  {
    const auto first = watch(1);
    const auto ended = first->AwaitEnd(60);
    ASSERT_TRUE(ended.ok()) << ended.status();
    EXPECT_TRUE(*ended);
    // The first evaluator dies in the middle of the evaluation.
  }
  const auto second = watch(2);
  const auto ended = second->AwaitEnd(60);
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_TRUE(*ended);
  evaluated = true;
  EXPECT_TRUE(second->Leave().ok());
}

TEST_F(ClusterReplicasTest, AMissingEvaluatorIsAWarning) {
  ClusterSpec spec = Spec(0, 1);
  spec.evaluator = true;
  spec.context.rendezvous_seconds = 0.2;
  std::vector<std::string> notes;
  spec.context.note = [&](const std::string& text) { notes.push_back(text); };
  const auto chief = Open(std::move(spec));
  ASSERT_TRUE(chief->Join({.step = 0}, absl::OkStatus()).ok());
  const absl::Status left = chief->Leave();
  EXPECT_TRUE(left.ok()) << left;
  EXPECT_THAT(notes, testing::Contains(AllOf(HasSubstr("warning: waited 0.2 s for evaluator-0"),
                                             HasSubstr("the training is complete and saved"))));
}

TEST_F(ClusterReplicasTest, AChiefNamesItsMissingWorkers) {
  ClusterSpec spec = Spec(0, 2);
  spec.context.rendezvous_seconds = 0.2;
  const absl::Status status = Open(std::move(spec))->Join({.step = 0}, absl::OkStatus()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(ToStd(status.message()), HasSubstr("waited 0.2 s for worker-0"));
}

TEST_F(ClusterReplicasTest, AWorkerNamesItsMissingChief) {
  ClusterSpec spec = Spec(1, 2);
  spec.context.rendezvous_seconds = 2;
  std::mutex mutex;
  std::vector<std::string> notes;
  spec.context.note = [&](const std::string& text) {
    const std::lock_guard lock(mutex);
    notes.push_back(text);
  };
  const auto worker = Open(std::move(spec));
  const absl::Status status = worker->Join({.step = -1}, absl::OkStatus()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(ToStd(status.message()), HasSubstr("for the chief at"));
  const std::lock_guard lock(mutex);
  EXPECT_THAT(notes, testing::Contains(HasSubstr("waiting for the chief at")));
}

TEST_F(ClusterReplicasTest, AnEvaluatorNamesTheAddressOfItsMissingChief) {
  ClusterSpec spec = Spec(0, 1);
  spec.context.self = {job::TaskType::kEvaluator, 0};
  spec.context.rendezvous_seconds = 0.2;
  const absl::Status status = WatchCluster(std::move(spec), key_).value()->AwaitEnd(60).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(ToStd(status.message()), AllOf(HasSubstr("for the chief at"), HasSubstr(folder_)));
}

// worker-1 reaches the chief, but not worker-0.
TEST_F(ClusterReplicasTest, AnUnreachedReplicaIsNamedToTheReachedOnes) {
  std::atomic<bool> stop = false;
  const auto spec_of = [&](int rank) {
    ClusterSpec spec = Spec(rank, 3);
    spec.context.stop = &stop;
    return spec;
  };
  // worker-0 listens at another address than it advertises, where a stranger listens instead.
  ClusterSpec hidden = spec_of(1);
  const std::string path = hidden.tasks[1].address.path;
  hidden.listening = process::Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr elsewhere = {.sa_family = AF_UNIX, .sa_data = {}};  // the system chooses a name
  ASSERT_EQ(bind(hidden.listening.get(), &elsewhere, sizeof elsewhere.sa_family), 0);
  const auto stranger = net::transport::Listener::Listen(
      net::transport::LocalAddress(key_, StrCat("worker-0\n1\nunix:", path)));
  ASSERT_TRUE(stranger.ok()) << stranger.status();
  ClusterSpec hasty = spec_of(2);
  hasty.context.stall_seconds = 1;

  const auto chief = Open(spec_of(0)), worker_0 = Open(std::move(hidden)),
             worker_1 = Open(std::move(hasty));
  std::vector<std::jthread> threads;
  for (Replicas* worker : {worker_0.get(), worker_1.get()}) {
    threads.emplace_back([worker] { worker->Join({.step = -1}, absl::OkStatus()).IgnoreError(); });
  }
  auto generation = chief->Join({.step = 0}, absl::OkStatus());
  ASSERT_TRUE(generation.ok()) << generation.status();
  const std::string said(ToStd(SumOnes(*generation, 3).message()));
  stop = true;
  EXPECT_THAT(said, HasSubstr("worker-0"));
  EXPECT_THAT(said, testing::Not(testing::StartsWith("rank 2 (worker-1)")));
}

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
        Progress progress(ProgressStyle::kNone, 2, clock_);
        const auto result = (*estimator)->Train(spec, progress, never_);
        EXPECT_TRUE(result.ok()) << "rank " << rank << ": " << result.status();
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
