#include "muster/job/tf_config.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/job/tf_config_contents.h"

namespace muster::job {
namespace {

using testing::HasSubstr;

constexpr TaskId kSecondWorker{TaskType::kWorker, 1}, kEvaluator{TaskType::kEvaluator, 0};

JobSpec MakeReplicas(const std::vector<std::pair<TaskType, int>>& replicas) {
  JobSpec spec;
  spec.name = "job";
  for (const auto& [type, count] : replicas) spec.replicas[type].replicas = count;
  return spec;
}

Cluster ParseCluster(const JobSpec& spec) {
  Cluster cluster;
  int port = 5000;
  for (const auto& [type, replica] : spec.replicas) {
    for (int i = 0; i < replica.replicas; ++i) cluster[{type, i}] = StrCat("h:", port++);
  }
  return cluster;
}

TEST(TfConfig, NamesTheClusterAndTheTask) {
  const JobSpec spec = MakeReplicas({{TaskType::kChief, 1},
                                     {TaskType::kWorker, 2},
                                     {TaskType::kPs, 1},
                                     {TaskType::kEvaluator, 1}});
  const Cluster cluster = ParseCluster(spec);
  EXPECT_EQ(TfConfig(spec, cluster, kSecondWorker).value(),
            R"({"cluster":{"chief":["h:5000"],"ps":["h:5002"],"worker":["h:5003","h:5004"]},)"
            R"("task":{"type":"worker","index":1},"environment":"cloud"})");
  EXPECT_THAT(TfConfig(spec, cluster, kEvaluator).value(), HasSubstr(R"("evaluator":["h:5001"])"));
  EXPECT_THAT(TfConfig(spec, cluster, kSecondWorker, {.evaluator_in_cluster = true}).value(),
              HasSubstr(R"("evaluator":["h:5001"])"));
}

TEST(TfConfig, KeepsTheModelFolderOfATemplatesOwn) {
  EXPECT_EQ(GetModelDir(R"({"model_dir": "/m", "task": {}})"), "/m");
  for (const char* const none : {"", "{}", "[]", "{", R"({"model_dir": 7})", "\xff"}) {
    EXPECT_EQ(GetModelDir(none), "") << none;
  }
  EXPECT_EQ(GetModelDir(std::string(100000, '[')), "");
  const JobSpec spec = MakeReplicas({{TaskType::kWorker, 2}});
  EXPECT_THAT(TfConfig(spec, ParseCluster(spec), kSecondWorker, {.model_dir = "/m"}).value(),
              HasSubstr(R"("model_dir":"/m")"));
}

TEST(TfConfig, WhatIsPrintedIsParsedAgain) {
  for (const char* const text :
       {"{}", R"({"cluster":{"chief":["h:1"],"worker":["h:2","h:3"],"ps":[]}})",
        R"({"cluster":{"worker":{"1":"h:2","7":"h:3"}},"task":{"type":"worker","index":7}})",
        R"({"task":{"type":"","index":-1},"environment":"cloud","model_dir":"/m",)"
        R"("service":{"a":[1,null]},"session_master":"","eval_session_master":"e"})"}) {
    const auto contents = ParseTfConfig(text);
    ASSERT_TRUE(contents.ok()) << contents.status();
    EXPECT_EQ(PrintTfConfig(*contents), text);
  }
  const auto contents =
      ParseTfConfig(R"({"cluster": {"worker": {"1": "h:2"}}, "task": {"index": "3"}})");
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_EQ(contents->cluster[0].addresses, (std::vector<std::string>{"", "h:2"}));
  EXPECT_EQ(contents->index, 3);
}

// Each names the field and what must be there.
TEST(TfConfig, WhatIsNotOneIsRefused) {
  const std::pair<const char*, const char*> refused[] = {
      {"[", "TF_CONFIG: not JSON: it begins with ["},
      {"[]", "TF_CONFIG: must be a JSON object with \"cluster\" and \"task\""},
      {R"({"cluster": []})", "TF_CONFIG: \"cluster\" must be an object, given: []"},
      {R"({"task": 7})", "TF_CONFIG: \"task\" must be an object, given: 7"},
      {R"({"task": {"type": 7}})", "TF_CONFIG: \"type\" must be a string, given: 7"},
      {R"({"task": {"index": 0.5}})",
       "TF_CONFIG: the task's index must be a whole number, given: 0.5"},
      {R"({"cluster": {"ps": "h:1"}})",
       "TF_CONFIG: the tasks of job 'ps' must be a list of addresses, such as [\"host:2222\"]"},
      {R"({"cluster": {"ps": [""]}})",
       "TF_CONFIG: the address of task 0 of job 'ps' must be a non-empty string, given: \"\""},
      {R"({"cluster": {"ps": {"-1": "h:1"}}})",
       "TF_CONFIG: job 'ps' has no task -1: indices are from 0 to 1048575"},
      {R"({"model_dir": ""})", "TF_CONFIG: model_dir should be non-empty"},
  };
  for (const auto& [text, message] : refused) {
    EXPECT_EQ(ParseTfConfig(text).status().message(), message);
  }
}

TEST(TfConfig, AChiefNeedNotKnowItsEvaluatorToBeDistributed) {
  const JobSpec spec = MakeReplicas({{TaskType::kChief, 1}, {TaskType::kEvaluator, 1}});
  EXPECT_EQ(TfConfig(spec, {{{TaskType::kChief, 0}, "h:1"}}, {TaskType::kChief, 0}).value(),
            R"({"cluster":{"chief":["h:1"]},"task":{"type":"chief","index":0},)"
            R"("environment":"cloud"})");
}

TEST(TfConfig, AMasterStaysOneUnlessAskedFor) {
  const JobSpec spec = MakeReplicas({{TaskType::kMaster, 1}, {TaskType::kWorker, 2}});
  const Cluster cluster = ParseCluster(spec);
  EXPECT_THAT(TfConfig(spec, cluster, {TaskType::kMaster, 0}).value(),
              HasSubstr(R"("task":{"type":"master","index":0})"));
  const std::string chief =
      TfConfig(spec, cluster, {TaskType::kMaster, 0}, {.master_as_chief = true}).value();
  EXPECT_THAT(chief, HasSubstr(R"("task":{"type":"chief","index":0})"));
  EXPECT_THAT(chief, HasSubstr(R"("chief":["h:5000"])"));
}

TEST(TfConfig, SparseForDynamicWorkersAndNoneForOneTask) {
  JobSpec spec = MakeReplicas({{TaskType::kWorker, 2}, {TaskType::kPs, 1}});
  spec.dynamic_workers = true;
  EXPECT_EQ(
      TfConfig(spec, ParseCluster(spec), kSecondWorker).value(),
      R"({"cluster":{"worker":{"1":"h:5002"},"ps":["h:5000"]},"task":{"type":"worker","index":1}})");
  const JobSpec one = MakeReplicas({{TaskType::kWorker, 1}});
  EXPECT_EQ(TfConfig(one, ParseCluster(one), {TaskType::kWorker, 0}).value(), "");
}

TEST(TfConfig, GapsAndStrangersAreErrors) {
  const JobSpec spec = MakeReplicas({{TaskType::kWorker, 2}});
  const Cluster gap = {{{TaskType::kWorker, 0}, "a:1"}, {{TaskType::kWorker, 2}, "b:1"}};
  EXPECT_THAT(TfConfig(spec, gap, {TaskType::kWorker, 0}).status().message(),
              HasSubstr("worker-2 but no worker-1"));
  EXPECT_THAT(TfConfig(spec, ParseCluster(spec), kEvaluator).status().message(),
              HasSubstr("evaluator-0 is not in the cluster"));
}

TEST(Arguments, TemplatesBecomeHostsAndPlaces) {
  const JobSpec spec = MakeReplicas({{TaskType::kPs, 2}, {TaskType::kWorker, 2}});
  const Cluster cluster = ParseCluster(spec);
  const auto expand = [&](std::string_view text) {
    return ExpandPlaceholders(text, {.cluster = cluster,
                                     .task = kSecondWorker,
                                     .job = "mnist",
                                     .name_space = "ads",
                                     .node = "n7"});
  };
  EXPECT_EQ(expand("--ps_hosts={ps_hosts:,}"), "--ps_hosts=h:5000,h:5001");
  EXPECT_EQ(expand("{worker_hosts:;}"), "h:5002;h:5003");
  EXPECT_EQ(expand("{worker_hosts}|{chief_hosts}|"), "h:5002,h:5003||");
  EXPECT_EQ(expand("{type}-{index} on {port}"), "worker-1 on 5003");
  EXPECT_EQ(expand("{host} {job} {namespace} {node}"), "h mnist ads n7");
  EXPECT_EQ(expand(R"({"json": {"a": 1}} { {index)"), R"({"json": {"a": 1}} { {index)");
}

TEST(CheckCluster, EachKindOfProgramHasItsRules) {
  const auto message = [](const std::vector<std::pair<TaskType, int>>& replicas, Expect expect) {
    return std::string(ToStd(CheckCluster(MakeReplicas(replicas), expect).message()));
  };
  EXPECT_THAT(message({{TaskType::kChief, 2}}, Expect::kAny), HasSubstr("one chief at most"));
  EXPECT_THAT(message({{TaskType::kChief, 1}, {TaskType::kMaster, 1}}, Expect::kAny),
              HasSubstr("two names of one task"));
  EXPECT_THAT(message({{TaskType::kMaster, 1}, {TaskType::kEvaluator, 1}}, Expect::kAny),
              HasSubstr("refuses an Evaluator"));
  EXPECT_THAT(message({{TaskType::kPs, 1}}, Expect::kAny),
              HasSubstr("neither a Chief nor a Worker"));
  EXPECT_THAT(message({{TaskType::kWorker, 2}}, Expect::kEstimator), HasSubstr("--chief"));
  EXPECT_THAT(message({{TaskType::kChief, 1}, {TaskType::kWorker, 2}}, Expect::kEstimator),
              HasSubstr("--ps 1"));
  EXPECT_THAT(message({{TaskType::kWorker, 2}, {TaskType::kPs, 1}}, Expect::kMultiWorkerMirrored),
              HasSubstr("has no ps"));
  EXPECT_THAT(message({{TaskType::kWorker, 2}, {TaskType::kPs, 1}}, Expect::kParameterServer),
              HasSubstr("coordinated by a chief"));
  EXPECT_EQ(message({{TaskType::kChief, 1},
                     {TaskType::kWorker, 2},
                     {TaskType::kPs, 1},
                     {TaskType::kEvaluator, 1}},
                    Expect::kEstimator),
            "");
  EXPECT_EQ(message({{TaskType::kWorker, 2}}, Expect::kMultiWorkerMirrored), "");
}

}  // namespace
}  // namespace muster::job
