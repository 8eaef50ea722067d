// Trainings by parameter servers in which a task is missing: each waiting task names it, and after
// the timeout all end with an error that names it.
#include <mutex>

#include "muster/train/parameter_server/ps_training_test_support.h"

namespace muster::train {
namespace {

using testing::Contains;
using testing::HasSubstr;

class Notes {
 public:
  std::function<void(const std::string&)> MakeNote() {
    return [this](const std::string& text) {
      const std::lock_guard lock(mutex_);
      notes_.push_back(text);
    };
  }
  std::vector<std::string> all() {
    const std::lock_guard lock(mutex_);
    return notes_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> notes_;
};

class PsWaitsTest : public PsTrainingTest {
 protected:
  // Long enough for the tasks that are started.
  static constexpr double kSeconds = 8;

  // Trains as replica `rank`, alone.
  absl::Status TrainAlone(const TestServers& servers, const Shape& shape, int rank, Notes* notes) {
    const job::TaskId self = rank == 0 ? job::TaskId{job::TaskType::kChief, 0}
                                       : job::TaskId{job::TaskType::kWorker, rank - 1};
    PsCluster cluster = servers.Cluster(self);
    cluster.replica = rank;
    cluster.context.note = notes->MakeNote();
    TrainSpec spec = Training();
    spec.input.source.shard = {
        .index = rank, .count = shape.replicas, .by = data::ShardBy::kRecord};
    const auto peers = NewPsPeers(std::move(cluster), servers.key());
    spec.replicas = peers.get();
    return Train(StrCat("m", rank, shape.synchronous), spec).status();
  }
  static void ExpectNamed(const absl::Status& status, Notes& notes, const std::string& name) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(ToStd(status.message()), HasSubstr(StrCat(" s for ", name)));
    EXPECT_THAT(notes.all(), Contains(HasSubstr(StrCat("waiting for ", name))));
  }
};

TEST_F(PsWaitsTest, AMissingReplicaIsNamedWithEveryStrategy) {
  std::vector<std::jthread> threads;
  for (const bool synchronous : {true, false}) {
    for (const int rank : {0, 1}) {
      if (rank == 1 && !synchronous) continue;
      threads.emplace_back([this, synchronous, rank] {
        const Shape shape = {.synchronous = synchronous, .rendezvous_seconds = kSeconds};
        const TestServers servers(shape, kTestSpec);
        Notes notes;
        ExpectNamed(TrainAlone(servers, shape, rank, &notes), notes,
                    rank == 0 ? "worker-0" : "chief-0");
      });
    }
  }
}

TEST_F(PsWaitsTest, AMissingServerIsNamed) {
  const Shape shape = {.servers = 2, .rendezvous_seconds = 2};
  TestServers servers(shape, kTestSpec);
  servers.End(1);
  Notes notes;
  ExpectNamed(TrainAlone(servers, shape, 0, &notes), notes, "ps-1");
}

TEST_F(PsWaitsTest, AServerNamesAllReplicasIfNoneConnects) {
  const Shape shape = {.rendezvous_seconds = 2};
  TestServers servers(shape, kTestSpec);
  PsCluster cluster = servers.Cluster({job::TaskType::kPs, 0});
  Notes notes;
  cluster.context.note = notes.MakeNote();
  servers.End(0);
  const absl::Status status = ServeParameters(servers.model(), cluster, servers.key());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(ToStd(status.message()), HasSubstr("waited 2 s for chief-0"));
  EXPECT_THAT(notes.all(), Contains("waiting for chief-0, worker-0"));
}

// Its weights are saved: the training is complete.
TEST_F(PsWaitsTest, AServerThatIsLostAfterTheLastCheckpointFailsNothing) {
  const Shape shape = {.servers = 1, .rendezvous_seconds = 1};
  TestServers servers(shape, kTestSpec);
  PsCluster chief = servers.Cluster({job::TaskType::kChief, 0});
  Notes notes;
  chief.context.note = notes.MakeNote();
  servers.End(0);
  const auto peers = NewPsPeers(std::move(chief), servers.key());
  EXPECT_EQ(peers->Leave(), absl::OkStatus());
  EXPECT_THAT(notes.all(), Contains(HasSubstr("is complete and saved, but not all parameter")));
  EXPECT_FALSE(peers->LeaveStopped().ok());
}

TEST_F(PsWaitsTest, ARefusalIsReportedByBothTasks) {
  const Shape shape = {};
  TestServers servers(shape, kTestSpec);
  servers.End(0);
  Notes at_server;
  PsCluster ps = servers.Cluster({job::TaskType::kPs, 0});
  ps.context.agreement = "epochs=5";
  ps.context.note = at_server.MakeNote();
  const auto server = StartParameterServer(servers.model(), ps, servers.key());
  ASSERT_TRUE(server.ok()) << server.status();
  PsCluster worker = servers.Cluster({job::TaskType::kWorker, 0});
  worker.replica = 1;
  worker.context.agreement = "epochs=1";
  const auto peers = NewPsPeers(std::move(worker), servers.key());
  TrainSpec spec = Training();
  spec.replicas = peers.get();
  const absl::Status refused = Train("m", spec).status();
  const char* const why = "worker-0 has [epochs 1], ps-0 has [epochs 5]";
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_THAT(ToStd(refused.message()), HasSubstr(why));
  EXPECT_THAT(at_server.all(), Contains(HasSubstr(why)));
}

}  // namespace
}  // namespace muster::train
