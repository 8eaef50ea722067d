#include "muster/train/cluster_role.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "muster/data/memory_log.h"
#include "muster/io/memory_file_system.h"
#include "muster/job/tf_config.h"
#include "muster/net/secret_file.h"
#include "muster/net/tls/certs.h"
#include "muster/net/transport/kernel_tls.h"
#include "muster/train/cluster/tf_config.h"

namespace muster::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kCluster[] =
    R"("cluster":{"chief":["h0:1"],"worker":["h1:1","h2:1"],"evaluator":["h3:1"]})";

RunConfig MakeConfig(const std::string& cluster, const std::string& type, int index) {
  RunConfig config;
  const absl::Status status = ApplyTfConfig(
      StrCat("{", cluster, ",\"task\":{\"type\":\"", type, "\",\"index\":", index, "}}"), &config);
  EXPECT_TRUE(status.ok()) << status;
  return config;
}

class ClusterRoleTest : public testing::Test {
 protected:
  ClusterRoleTest() { Unset(); }
  ~ClusterRoleTest() override { Unset(); }
  static void Unset() {
    for (const char* const name : {"TF_CONFIG", "MUSTER_KEY_FILE", "MUSTER_CERTS",
                                   "MUSTER_PLAIN_TEXT", "MUSTER_KERNEL_TLS"}) {
      unsetenv(name);
    }
  }
  std::string Refused(const RunConfig& config, bool evaluator) {
    const auto role = JoinFromEnvironment(config, {.evaluator = evaluator}, clock_);
    EXPECT_EQ(role.status().code(), absl::StatusCode::kFailedPrecondition) << role.status();
    return std::string(ToStd(role.status().message()));
  }
  SystemClock clock_;
};

TEST_F(ClusterRoleTest, AProcessThatTrainsAloneHasNone) {
  for (const RunConfig& config :
       {RunConfig(), MakeConfig(R"("cluster":{"chief":["h0:1"]})", "chief", 0)}) {
    const auto role = JoinFromEnvironment(config, {}, clock_);
    ASSERT_TRUE(role.ok()) << role.status();
    EXPECT_EQ(role->replicas, nullptr);
    EXPECT_EQ(role->training, nullptr);
  }
}

TEST_F(ClusterRoleTest, TheFlagSetsTheTimeoutElseTheEnvironmentDoes) {
  unsetenv(job::kRendezvousVariable);
  EXPECT_EQ(RendezvousSeconds(-1).value(), 300);
  setenv(job::kRendezvousVariable, "20", 1);
  EXPECT_EQ(RendezvousSeconds(-1).value(), 20);
  EXPECT_EQ(RendezvousSeconds(7).value(), 7);
  EXPECT_TRUE(std::isinf(RendezvousSeconds(0).value()));
  setenv(job::kRendezvousVariable, "0", 1);
  EXPECT_TRUE(std::isinf(RendezvousSeconds(-1).value()));
  setenv(job::kRendezvousVariable, "soon", 1);
  EXPECT_THAT(ToStd(RendezvousSeconds(-1).status().message()), HasSubstr("'soon'"));
  unsetenv(job::kRendezvousVariable);
}

TEST_F(ClusterRoleTest, AnEvaluatorKnowsItsChief) {
  const RunConfig config = MakeConfig(kCluster, "evaluator", 0);
  EXPECT_TRUE(config.cluster.empty());
  EXPECT_EQ(config.chief_address, "h0:1");
  EXPECT_THAT(Refused(config, /*evaluator=*/true), HasSubstr("MUSTER_KEY_FILE"));
}

TEST_F(ClusterRoleTest, AnEvaluatorWithoutTheOptionIsRefused) {
  EXPECT_THAT(Refused(MakeConfig(kCluster, "evaluator", 0), /*evaluator=*/false),
              HasSubstr("--evaluator"));
}

TEST_F(ClusterRoleTest, AChiefWithAnEvaluatorIsNotAlone) {
  const RunConfig config = MakeConfig(R"("cluster":{"chief":["h0:1"]})", "chief", 0);
  EXPECT_THAT(Refused(config, /*evaluator=*/true), HasSubstr("MUSTER_KEY_FILE"));
}

TEST_F(ClusterRoleTest, TwoTasksOfOneAddressAreRefusedAndNamed) {
  for (const auto& [cluster, tasks] :
       {std::pair(R"("cluster":{"chief":["h0:1"],"worker":["h1:1","h1:1"]})",
                  "worker-0 and worker-1"),
        std::pair(R"("cluster":{"chief":["localhost:1"],"worker":["h1:1","127.0.0.1:1"]})",
                  "chief-0 and worker-1"),
        std::pair(R"("cluster":{"chief":["h1:1"],"worker":["h2:1"],"ps":["H1:1"]})",
                  "chief-0 and ps-0")}) {
    const auto role = JoinFromEnvironment(MakeConfig(cluster, "chief", 0), {}, clock_);
    EXPECT_TRUE(absl::IsInvalidArgument(role.status())) << role.status();
    EXPECT_THAT(std::string(ToStd(role.status().message())),
                AllOf(HasSubstr(tasks), HasSubstr("1:1")));
  }
  // An evaluator does not listen: its address means nothing.
  EXPECT_THAT(
      Refused(MakeConfig(R"("cluster":{"chief":["h0:1"],"evaluator":["h0:1"]})", "chief", 0),
              /*evaluator=*/false),
      HasSubstr("MUSTER_KEY_FILE"));
}

TEST_F(ClusterRoleTest, AMisspeltTypeOfTasksIsRefused) {
  for (const std::string task : {"chief", "wroker"}) {
    setenv("TF_CONFIG",
           StrCat(R"({"cluster":{"chief":["h0:1"],"wroker":["h1:1"]},"task":{"type":")", task,
                  R"(","index":0}})")
               .c_str(),
           1);
    RunConfig config;
    const absl::Status status = ReadTaskEnvironment(clock_, &config);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(ToStd(status.message())),
                AllOf(HasSubstr("'wroker'"), HasSubstr("did you mean 'worker'?")));
  }
}

TEST_F(ClusterRoleTest, AKeyThatIsNotThereIsNamedWithItsVariable) {
  setenv("MUSTER_KEY_FILE", "/nowhere/key", 1);
  const auto role = JoinFromEnvironment(MakeConfig(kCluster, "chief", 0), {}, clock_);
  EXPECT_THAT(std::string(ToStd(role.status().message())),
              AllOf(HasSubstr("MUSTER_KEY_FILE"), HasSubstr("/nowhere/key")));
}

TEST_F(ClusterRoleTest, AKernelThatCannotEncryptIsRefusedWhereItIsToDoSo) {
  if (net::transport::KernelChangesTlsKeys()) GTEST_SKIP() << "this kernel can";
  const std::string folder = testing::TempDir() + "cluster-role-certs";
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(net::MakeJobCertificates(folder, "job", {"127.0.0.1"}, 10).ok());
  const std::string key = folder + "/key";
  ASSERT_TRUE(net::WriteSecretFile(key, std::string(64, 'a')).ok());
  setenv("MUSTER_KEY_FILE", key.c_str(), 1);
  setenv("MUSTER_CERTS", folder.c_str(), 1);
  setenv("MUSTER_KERNEL_TLS", "1", 1);
  const RunConfig config =
      MakeConfig(R"("cluster":{"chief":["127.0.0.1:1"],"worker":["h1:1"]})", "chief", 0);
  EXPECT_THAT(Refused(config, /*evaluator=*/false), HasSubstr("MUSTER_KERNEL_TLS"));
  std::filesystem::remove_all(folder);
}

// Protection is needed only for addresses other than loopback addresses.
TEST_F(ClusterRoleTest, PlainTextBetweenMachinesMustBeRequested) {
  const RunConfig far = MakeConfig(kCluster, "worker", 0);
  const RunConfig near = MakeConfig(
      R"("cluster":{"chief":["localhost:1"],"worker":["127.0.0.2:1","[::1]:2"]})", "worker", 0);
  const RunConfig alone = MakeConfig(R"("cluster":{"chief":["h0:1"]})", "chief", 0);
  const RunConfig evaluator = MakeConfig(kCluster, "evaluator", 0);
  const RunConfig server =
      MakeConfig(R"("cluster":{"chief":["127.0.0.1:1"],"ps":["10.0.0.5:1"]})", "chief", 0);
  for (const RunConfig* const config : {&far, &evaluator, &server}) {
    const absl::Status status = CheckProtection(*config, {});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(ToStd(status.message())), HasSubstr("muster certs"));
    EXPECT_TRUE(CheckProtection(*config, {.certificates = "certs"}).ok());
    EXPECT_TRUE(CheckProtection(*config, {.plain_text = true}).ok());
    EXPECT_FALSE(CheckProtection(*config, {.certificates = "certs", .plain_text = true}).ok());
  }
  EXPECT_TRUE(CheckProtection(near, {}).ok());
  EXPECT_TRUE(CheckProtection(alone, {}).ok());
  EXPECT_FALSE(CheckProtection(alone, {.evaluator = true}).ok());
  setenv("MUSTER_PLAIN_TEXT", "1", 1);
  EXPECT_TRUE(CheckProtection(far, {}).ok());
  EXPECT_FALSE(CheckProtection(far, {.certificates = "certs"}).ok());
  setenv("MUSTER_CERTS", "certs", 1);
  EXPECT_FALSE(CheckProtection(far, {}).ok());
  unsetenv("MUSTER_PLAIN_TEXT");
  EXPECT_FALSE(CheckProtection(far, {.plain_text = true}).ok());
  EXPECT_TRUE(CheckProtection(far, {}).ok());
}

InputSpec Input(data::SourceSpec source) {
  InputSpec input;
  input.source = std::move(source);
  return input;
}

TEST_F(ClusterRoleTest, AnEvaluatorHasNoShardOfTheData) {
  const auto files = io::NewMemoryFileSystem();
  for (const char* path : {"a.csv", "b.csv", "c.csv"}) {
    ASSERT_TRUE(io::WriteFileAtomically(*files, path, "x\n1\n").ok());
  }
  for (int worker = 0; worker < 2; ++worker) {
    const auto shard =
        GetShard(MakeConfig(kCluster, "worker", worker), Input({.patterns = {"*.csv"}}), *files);
    ASSERT_TRUE(shard.ok()) << shard.status();
    EXPECT_EQ(shard->index, worker + 1);
    EXPECT_EQ(shard->count, 3);
    EXPECT_EQ(shard->by, data::ShardBy::kFile);
  }
}

TEST_F(ClusterRoleTest, PartitionsAreDividedLikeFiles) {
  const auto files = io::NewMemoryFileSystem();
  const auto log = std::make_shared<data::MemoryLog>();
  const data::SourceSpec source = {.patterns = {"log://clicks"}, .schemes = {{"log", log}}};
  for (int i = 0; i < 3; ++i) log->Append(StrCat("clicks/", i), "record");
  const data::SourceSpec two = {.patterns = {"log://clicks/0", "log://clicks/1"},
                                .schemes = {{"log", log}}};
  EXPECT_EQ(GetShard(MakeConfig(kCluster, "worker", 1), Input(source), *files)->by,
            data::ShardBy::kFile);
  EXPECT_EQ(GetShard(MakeConfig(kCluster, "worker", 1), Input(two), *files)->by,
            data::ShardBy::kRecord);
}

// A program writes a stream of batches into one replica's pipe: it is for this replica alone.
TEST_F(ClusterRoleTest, AStreamOfBatchesIsNotDivided) {
  const auto files = io::NewMemoryFileSystem();
  const auto shard =
      GetShard(MakeConfig(kCluster, "worker", 1), Input({.patterns = {"-"}}), *files);
  ASSERT_TRUE(shard.ok()) << shard.status();
  EXPECT_EQ(shard->count, 1);
}

}  // namespace
}  // namespace muster::train
