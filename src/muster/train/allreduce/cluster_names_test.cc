// Tasks whose addresses in TF_CONFIG are names, as those of pods in Kubernetes are: a name may
// become resolvable only after its task has started, and a task never resolves its own name.
#include <gtest/gtest.h>

#include <thread>

#include "muster/collective/collectives.h"
#include "muster/net/transport/listener.h"
#include "muster/train/allreduce/cluster_replicas.h"

namespace muster::train {
namespace {

using net::transport::Address;

uint16_t FreePort() {
  return net::transport::Listener::Listen(Address::Tcp("127.0.0.1", 0)).value()->address().port;
}

// The chief is given only names, including its own; the worker is given the chief's address.
TEST(ClusterNamesTest, NoTaskResolvesItsOwnName) {
  const net::Token key = net::Token::Make().value();
  const SystemClock clock;
  const uint16_t ports[] = {FreePort(), FreePort()};
  const job::TaskId tasks[] = {{job::TaskType::kChief, 0}, {job::TaskType::kWorker, 0}};
  const std::string chief_known_as[] = {"chief-0.job.invalid", "127.0.0.1"};
  std::vector<std::jthread> threads;
  for (const int rank : {0, 1}) {
    threads.emplace_back([&, rank] {
      ClusterSpec spec = {.context = {.job = "test", .self = tasks[rank], .incarnation = 1}};
      spec.tasks = {{tasks[0], Address::Tcp(chief_known_as[rank], ports[0])},
                    {tasks[1], Address::Tcp("worker-0.job.invalid", ports[1])}};
      const auto replicas = JoinCluster(std::move(spec), key, clock);
      ASSERT_TRUE(replicas.ok()) << replicas.status();
      const auto generation = (*replicas)->Join({.step = rank == 0 ? 7 : -1}, absl::OkStatus());
      ASSERT_TRUE(generation.ok()) << generation.status();
      std::vector<float> ones(10, 1);
      EXPECT_TRUE(collective::AllReduce(*generation->group, ones).ok());
      EXPECT_EQ(ones[9], 2);
      // The chief ends the training for all.
      EXPECT_TRUE(collective::Barrier(*generation->group).ok());
      EXPECT_TRUE((*replicas)->Leave().ok());
    });
  }
}

}  // namespace
}  // namespace muster::train
