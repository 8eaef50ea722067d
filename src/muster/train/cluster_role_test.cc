#include "muster/train/cluster_role.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "muster/io/memory_file_system.h"
#include "muster/train/tf_config.h"

namespace muster::train {
namespace {

using testing::HasSubstr;

constexpr char kCluster[] =
    R"("cluster":{"chief":["h0:1"],"worker":["h1:1","h2:1"],"evaluator":["h3:1"]})";

RunConfig ConfigOf(const std::string& cluster, const std::string& type, int index) {
  RunConfig config;
  const absl::Status status = ApplyTfConfig(
      StrCat("{", cluster, ",\"task\":{\"type\":\"", type, "\",\"index\":", index, "}}"), &config);
  EXPECT_TRUE(status.ok()) << status;
  return config;
}

class ClusterRoleTest : public testing::Test {
 protected:
  ClusterRoleTest() { unsetenv("MUSTER_KEY_FILE"); }
  std::string Refused(const RunConfig& config, bool evaluator) {
    const auto role = JoinFromEnvironment(config, {.evaluator = evaluator}, clock_);
    EXPECT_EQ(role.status().code(), absl::StatusCode::kFailedPrecondition) << role.status();
    return std::string(ToStd(role.status().message()));
  }
  SystemClock clock_;
};

TEST_F(ClusterRoleTest, AProcessByItselfHasNone) {
  for (const RunConfig& config :
       {RunConfig(), ConfigOf(R"("cluster":{"chief":["h0:1"]})", "chief", 0)}) {
    const auto role = JoinFromEnvironment(config, {}, clock_);
    ASSERT_TRUE(role.ok()) << role.status();
    EXPECT_EQ(role->replicas, nullptr);
    EXPECT_EQ(role->training, nullptr);
  }
}

TEST_F(ClusterRoleTest, AnEvaluatorKnowsItsChief) {
  const RunConfig config = ConfigOf(kCluster, "evaluator", 0);
  EXPECT_TRUE(config.cluster.empty());
  EXPECT_EQ(config.chief_address, "h0:1");
  EXPECT_THAT(Refused(config, /*evaluator=*/true), HasSubstr("MUSTER_KEY_FILE"));
}

TEST_F(ClusterRoleTest, AnEvaluatorOfWhomTheOthersDoNotKnowIsRefused) {
  EXPECT_THAT(Refused(ConfigOf(kCluster, "evaluator", 0), /*evaluator=*/false),
              HasSubstr("--evaluator"));
}

TEST_F(ClusterRoleTest, AChiefWithAnEvaluatorIsNotAlone) {
  const RunConfig config = ConfigOf(R"("cluster":{"chief":["h0:1"]})", "chief", 0);
  EXPECT_THAT(Refused(config, /*evaluator=*/true), HasSubstr("MUSTER_KEY_FILE"));
}

TEST_F(ClusterRoleTest, AnEvaluatorHasNoPartOfTheData) {
  const auto files = io::NewMemoryFileSystem();
  for (const char* path : {"a.csv", "b.csv", "c.csv"}) {
    ASSERT_TRUE(io::WriteFileAtomically(*files, path, "x\n1\n").ok());
  }
  for (int worker = 0; worker < 2; ++worker) {
    const auto shard = ShardOf(ConfigOf(kCluster, "worker", worker), {"*.csv"}, *files);
    ASSERT_TRUE(shard.ok()) << shard.status();
    EXPECT_EQ(shard->index, worker + 1);
    EXPECT_EQ(shard->count, 3);
    EXPECT_EQ(shard->by, data::ShardBy::kFile);
  }
}

}  // namespace
}  // namespace muster::train
