// The fixture that the tests of ClusterReplicas share. For tests of this room only.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "muster/collective/collectives.h"
#include "muster/train/allreduce/cluster_replicas.h"

namespace muster::train {

inline constexpr job::TaskId kChiefTask = {job::TaskType::kChief, 0};

inline job::TaskId GetTask(int rank) {
  return rank == 0 ? kChiefTask : job::TaskId{job::TaskType::kWorker, rank - 1};
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
          {GetTask(i),
           {.kind = net::transport::Address::Kind::kUnix, .path = StrCat(folder_, "/", i)}});
    }
    return spec;
  }
  std::unique_ptr<Replicas> Open(ClusterSpec spec) const {
    auto replicas = JoinCluster(std::move(spec), key_, clock_);
    EXPECT_TRUE(replicas.ok()) << replicas.status();
    return *std::move(replicas);
  }

  // Ends the program where that fails.
  static ReplicaGeneration Join(Replicas& replicas, const StateId& state, const absl::Status& why) {
    auto generation = replicas.Join(state, why);
    EXPECT_TRUE(generation.ok()) << generation.status();
    return *std::move(generation);
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

}  // namespace muster::train
