// The replicas of a cluster connect over real sockets, in threads.
#include "muster/train/allreduce/cluster_replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <latch>
#include <mutex>
#include <thread>

#include "muster/collective/rank_levels.h"
#include "muster/net/transport/listener.h"
#include "muster/net/transport/local_address.h"
#include "muster/train/allreduce/cluster_replicas_test_support.h"

namespace muster::train {
namespace {

using net::transport::Address;
using testing::AllOf;
using testing::HasSubstr;

// The chief's Leave ends all generations: it waits until everybody has seen the last barrier.
TEST_F(ClusterReplicasTest, ReplicasConnectTrainAndEnd) {
  std::latch done(3);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      const auto replicas = Open(Spec(rank, 3));
      auto generation = Join(*replicas, {.step = rank == 0 ? 7 : -1}, absl::OkStatus());
      EXPECT_EQ(generation.group->rank(), rank);
      EXPECT_THAT(generation.states,
                  testing::ElementsAre(StateId{.step = 7}, StateId(), StateId()));
      EXPECT_TRUE(SumOnes(generation, 3).ok());
      EXPECT_TRUE(collective::Barrier(*generation.group).ok());
      done.arrive_and_wait();
      EXPECT_TRUE(replicas->Leave().ok());
      const absl::Status late = replicas->Join({.step = 8}, absl::OkStatus()).status();
      EXPECT_EQ(late.code(), absl::StatusCode::kCancelled) << late;
    });
  }
}

// Of a large group each replica connects to its neighbours, and to others when a state comes from
// them.
TEST_F(ClusterReplicasTest, ALargeGroupConnectsToNeighbours) {
  constexpr int kReplicas = 20;
  std::latch done(kReplicas);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kReplicas; ++rank) {
    threads.emplace_back([&, rank] {
      const auto replicas = Open(Spec(rank, kReplicas));
      auto generation = Join(*replicas, {.step = rank == 0 ? 7 : -1}, absl::OkStatus());
      EXPECT_TRUE(SumOnes(generation, kReplicas).ok());
      std::vector<float> many(100'000, 1);
      EXPECT_TRUE(collective::AllReduce(*generation.group, many).ok());
      EXPECT_EQ(many.back(), kReplicas);
      const auto neighbours = collective::GetNeighbours(kReplicas, 3);
      const int far = 10;
      EXPECT_EQ(std::find(neighbours.begin(), neighbours.end(), far), neighbours.end());
      std::vector<float> state(1000, static_cast<float>(rank));
      if (rank == 3 || rank == far) {
        const std::vector<int> from = {3}, to = {far};
        EXPECT_TRUE(collective::Broadcast(*generation.group, from, to,
                                          std::as_writable_bytes(std::span(state)))
                        .ok());
        EXPECT_EQ(state.back(), 3);
      }
      EXPECT_TRUE(collective::Barrier(*generation.group).ok());
      done.arrive_and_wait();
      EXPECT_TRUE(replicas->Leave().ok());
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

// Connections outlive a generation between those that are in the next one too: a loss and a join
// make only the connections that did not exist.
class JoinTest : public ClusterReplicasTest, public testing::WithParamInterface<int> {};

TEST_P(JoinTest, MakesOnlyTheConnectionsThatAreMissing) {
  const int n = GetParam(), lost = n - 1;
  const auto get_neighbours = [&](int rank) {
    return static_cast<int>(collective::GetNeighbours(n, rank).size());
  };
  // The chief's Leave ends all generations: it waits until everybody has seen the last barrier.
  std::latch done(n);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < lost; ++rank) {
    threads.emplace_back([&, rank] {
      const auto replicas = Open(Spec(rank, n));
      auto generation = Join(*replicas, {.step = 0}, absl::OkStatus());
      EXPECT_EQ(generation.made, get_neighbours(rank));
      absl::Status status;
      while (status.ok()) status = SumOnes(generation, static_cast<float>(n));
      generation.group.reset();
      generation = Join(*replicas, {.step = 1}, status);
      const std::vector<int> neighbours = collective::GetNeighbours(n, rank);
      EXPECT_EQ(generation.made, std::count(neighbours.begin(), neighbours.end(), lost));
      EXPECT_EQ(generation.kept, get_neighbours(rank) - generation.made);
      EXPECT_TRUE(SumOnes(generation, static_cast<float>(n)).ok());
      EXPECT_TRUE(collective::Barrier(*generation.group).ok());
      done.arrive_and_wait();
      EXPECT_TRUE(replicas->Leave().ok());
    });
  }
  for (const int64_t incarnation : {1, 2}) {
    const auto replicas = Open(Spec(lost, n, incarnation));
    auto generation = Join(*replicas, {.step = incarnation == 1 ? 0 : -1}, absl::OkStatus());
    EXPECT_EQ(generation.made, get_neighbours(lost));
    EXPECT_EQ(generation.kept, 0);
    EXPECT_TRUE(SumOnes(generation, static_cast<float>(n)).ok());
    if (incarnation == 1) continue;  // as one that is killed
    EXPECT_TRUE(collective::Barrier(*generation.group).ok());
    done.arrive_and_wait();
    EXPECT_TRUE(replicas->Leave().ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Replicas, JoinTest, testing::Values(4, 32));

// Between two steps a replica stops for a newcomer at once; in a step it goes on, but not if
// nothing moves.
TEST_F(ClusterReplicasTest, AStepThatIsStuckDoesNotHoldUpANewcomer) {
  const auto elastic = [this](int rank) {
    ClusterSpec spec = Spec(rank, 3);
    spec.min_replicas = 2;
    return spec;
  };
  std::latch formed(3), stuck(2), done(3);
  const auto end = [&](Replicas& replicas, ReplicaGeneration& generation) {
    EXPECT_TRUE(SumOnes(generation, 3).ok());
    EXPECT_TRUE(collective::Barrier(*generation.group).ok());
    done.arrive_and_wait();
    EXPECT_TRUE(replicas.Leave().ok());
  };
  std::jthread chief([&] {
    const auto replicas = Open(elastic(0));
    auto generation = Join(*replicas, {.step = 0}, absl::OkStatus());
    formed.arrive_and_wait();
    absl::Status status;
    while (status.ok()) {
      status = generation.group->Check();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(absl::IsAborted(status));
    EXPECT_THAT(ToStd(status.message()), HasSubstr("joins"));
    stuck.arrive_and_wait();  // it tells the other one when its group ends
    generation.group.reset();
    generation = Join(*replicas, {.step = 1}, status);
    end(*replicas, generation);
  });
  std::jthread worker([&] {
    const auto replicas = Open(elastic(1));
    auto generation = Join(*replicas, {.step = 0}, absl::OkStatus());
    formed.arrive_and_wait();
    const absl::Status status =
        generation.group->Receive(0, 1, [](net::transport::ConstBytes, size_t) {});
    EXPECT_TRUE(absl::IsAborted(status));
    EXPECT_THAT(ToStd(status.message()), HasSubstr("worker-1 (incarnation 1) joins"));
    stuck.arrive_and_wait();
    generation.group.reset();
    generation = Join(*replicas, {.step = 1}, status);
    end(*replicas, generation);
  });
  formed.arrive_and_wait();  // without it, after settle_seconds
  const auto replicas = Open(elastic(2));
  auto generation = Join(*replicas, {.step = -1}, absl::OkStatus());
  end(*replicas, generation);
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

}  // namespace
}  // namespace muster::train
