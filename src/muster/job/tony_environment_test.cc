#include "muster/job/tony_environment.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::job {
namespace {

using testing::Contains;
using testing::Key;
using testing::Not;
using testing::Pair;

using Variables = std::map<std::string, std::string>;

JobSpec MakeSpec(const std::map<TaskType, int>& counts) {
  JobSpec spec;
  for (const auto& [type, count] : counts) spec.replicas[type].replicas = count;
  return spec;
}

Variables GetVariables(const JobSpec& spec, TaskId task, const TfConfigOptions& options = {}) {
  Cluster cluster;
  int port = 1;
  for (const auto& [type, replica] : spec.replicas) {
    for (int i = 0; i < replica.replicas; ++i) cluster[{type, i}] = StrCat("h:", port++);
  }
  const auto found = GetTonyEnvironment(spec, cluster, task, 3, options);
  return {found.begin(), found.end()};
}

TEST(TonyEnvironment, NamesTheClusterAndTheTask) {
  const JobSpec spec = MakeSpec({{TaskType::kPs, 1}, {TaskType::kWorker, 2}});
  EXPECT_EQ(GetVariables(spec, {TaskType::kWorker, 0}),
            (Variables{{"CLUSTER_SPEC", R"({"ps":["h:1"],"worker":["h:2","h:3"]})"},
                       {"JOB_NAME", "worker"},
                       {"TASK_INDEX", "0"},
                       {"TASK_NUM", "2"},
                       {"SESSION_ID", "3"},
                       {"IS_CHIEF", "true"},
                       {"DISTRIBUTED_MODE", "GANG"}}));
  EXPECT_THAT(GetVariables(spec, {TaskType::kWorker, 1}), Not(Contains(Key("IS_CHIEF"))));
  EXPECT_THAT(GetVariables(spec, {TaskType::kPs, 0}), Not(Contains(Key("IS_CHIEF"))));
}

TEST(TonyEnvironment, AChiefIsTheOnlyOne) {
  const JobSpec spec =
      MakeSpec({{TaskType::kChief, 1}, {TaskType::kEvaluator, 1}, {TaskType::kWorker, 1}});
  const Variables worker = GetVariables(spec, {TaskType::kWorker, 0});
  EXPECT_THAT(worker, Not(Contains(Key("IS_CHIEF"))));
  EXPECT_THAT(worker, Contains(Pair("TASK_NUM", "3")));
  EXPECT_THAT(worker, Contains(Pair("CLUSTER_SPEC", R"({"chief":["h:1"],"worker":["h:3"]})")));
  EXPECT_THAT(GetVariables(spec, {TaskType::kChief, 0}), Contains(Pair("IS_CHIEF", "true")));
  constexpr char kAll[] = R"({"chief":["h:1"],"evaluator":["h:2"],"worker":["h:3"]})";
  EXPECT_THAT(GetVariables(spec, {TaskType::kEvaluator, 0}), Contains(Pair("CLUSTER_SPEC", kAll)));
  EXPECT_THAT(GetVariables(spec, {TaskType::kWorker, 0}, {.evaluator_in_cluster = true}),
              Contains(Pair("CLUSTER_SPEC", kAll)));
}

TEST(TonyEnvironment, ATaskAloneIsACluster) {
  const Variables alone = GetVariables(MakeSpec({{TaskType::kWorker, 1}}), {TaskType::kWorker, 0});
  EXPECT_THAT(alone, Contains(Pair("CLUSTER_SPEC", R"({"worker":["h:1"]})")));
  EXPECT_THAT(alone, Contains(Pair("IS_CHIEF", "true")));
}

}  // namespace
}  // namespace muster::job
