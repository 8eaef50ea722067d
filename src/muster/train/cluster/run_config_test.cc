#include "muster/train/loop/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "muster/train/cluster/tf_config.h"

namespace muster::train {
namespace {

using testing::HasSubstr;

RunConfig GoodConfig() {
  RunConfig config;
  config.model_dir = "model";
  return config;
}

TEST(RunConfigTest, HasTheEstimatorsDefaults) {
  const RunConfig config = GoodConfig();
  EXPECT_TRUE(Validate(config).ok());
  EXPECT_EQ(config.save_summary_steps, 100);
  EXPECT_EQ(config.checkpoint_steps(), 0);
  EXPECT_EQ(config.checkpoint_secs(), 600);
  EXPECT_EQ(config.keep_checkpoint_max, 5);
  EXPECT_EQ(config.keep_checkpoint_every_n_hours, 10000);
  EXPECT_EQ(config.log_step_count_steps, 100);
  EXPECT_EQ(config.session_creation_timeout_secs, 7200);
  EXPECT_EQ(config.task_type, "worker");
  EXPECT_TRUE(config.is_chief);
  EXPECT_EQ(config.num_worker_replicas, 1);
  EXPECT_EQ(config.num_ps_replicas, 0);
}

TEST(RunConfigTest, SecondsAreTheDefaultOnlyIfStepsAreNotGiven) {
  RunConfig config = GoodConfig();
  config.save_checkpoints_steps = 10;
  EXPECT_EQ(config.checkpoint_steps(), 10);
  EXPECT_EQ(config.checkpoint_secs(), 0);
}

// Every error of RunConfig has its own message. (A seed need not be checked: its type is an
// integer.)
TEST(RunConfigTest, EachErrorHasItsMessage) {
  const struct {
    std::function<void(RunConfig*)> break_it;
    std::string message;
  } cases[] = {
      {[](RunConfig* c) { c->model_dir = ""; }, "model_dir should be non-empty"},
      {[](RunConfig* c) { c->save_checkpoints_steps = 1, c->save_checkpoints_secs = 1; },
       "save_checkpoints_steps and save_checkpoints_secs cannot be both set"},
      {[](RunConfig* c) { c->save_summary_steps = -1; }, "save_summary_steps should be >= 0"},
      {[](RunConfig* c) { c->histogram_steps = -1; }, "histogram_steps should be >= 0"},
      {[](RunConfig* c) { c->save_checkpoints_steps = -1; },
       "save_checkpoints_steps should be >= 0"},
      {[](RunConfig* c) { c->save_checkpoints_secs = -1; }, "save_checkpoints_secs should be >= 0"},
      {[](RunConfig* c) { c->keep_checkpoint_max = -1; }, "keep_checkpoint_max should be >= 0"},
      {[](RunConfig* c) { c->keep_checkpoint_every_n_hours = 0; },
       "keep_checkpoint_every_n_hours should be > 0"},
      {[](RunConfig* c) { c->log_step_count_steps = 0; }, "log_step_count_steps should be > 0"},
      {[](RunConfig* c) { c->session_creation_timeout_secs = 0; },
       "session_creation_timeout_secs should be > 0"},
      {[](RunConfig* c) { c->threads = 0; }, "threads should be > 0"},
  };
  std::set<std::string> messages;
  for (const auto& test : cases) {
    RunConfig config = GoodConfig();
    test.break_it(&config);
    const absl::Status status = Validate(config);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << test.message;
    EXPECT_EQ(status.message(), test.message);
    EXPECT_TRUE(messages.insert(test.message).second) << "said twice: " << test.message;
  }
}

constexpr const char* kCluster =
    R"("cluster": {"chief": ["c:1"], "ps": ["p0:1", "p1:1"], "worker": ["w0:1", "w1:1", "w2:1"]})";

absl::StatusOr<RunConfig> FromTfConfig(const std::string& json) {
  RunConfig config;
  MUSTER_RETURN_IF_ERROR(ApplyTfConfig(json, &config));
  return config;
}

TEST(TfConfigTest, GivesATaskItsPlace) {
  const auto config =
      FromTfConfig(StrCat("{", kCluster, R"(, "task": {"type": "worker", "index": 1}})"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->task_type, "worker");
  EXPECT_EQ(config->task_id, 1);
  EXPECT_FALSE(config->is_chief);
  EXPECT_EQ(config->master, "grpc://w1:1");
  EXPECT_EQ(config->num_ps_replicas, 2);
  EXPECT_EQ(config->num_worker_replicas, 4);
  EXPECT_EQ(config->cluster.at("ps"), (std::vector<std::string>{"p0:1", "p1:1"}));
}

TEST(TfConfigTest, GlobalIdsAreChiefFirstThenByNamePsLast) {
  const struct {
    const char* type;
    int index, id;
  } cases[] = {{"chief", 0, 0}, {"worker", 0, 1}, {"worker", 2, 3}, {"ps", 0, 4}, {"ps", 1, 5}};
  for (const auto& test : cases) {
    const auto config = FromTfConfig(StrCat("{", kCluster, R"(, "task": {"type": ")", test.type,
                                            R"(", "index": ")", test.index, R"("}})"));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->global_id_in_cluster, test.id) << test.type << test.index;
    EXPECT_EQ(config->is_chief, std::string("chief") == test.type);
  }
}

TEST(TfConfigTest, TheEvaluatorIsOutsideTheCluster) {
  const auto config = FromTfConfig(StrCat(
      "{", kCluster,
      R"(, "task": {"type": "evaluator", "index": 7}, "eval_session_master": "grpc://e:1"})"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->task_id, 7);
  EXPECT_TRUE(config->cluster.empty());
  EXPECT_EQ(config->master, "");
  EXPECT_EQ(config->evaluation_master, "grpc://e:1");
  EXPECT_EQ(config->num_ps_replicas, 0);
  EXPECT_EQ(config->num_worker_replicas, 0);
  EXPECT_FALSE(config->global_id_in_cluster.has_value());
  EXPECT_FALSE(config->is_chief);
}

TEST(TfConfigTest, AClusterOfOneNeedsNoMaster) {
  const auto one =
      FromTfConfig(R"({"cluster": {"chief": ["c:1"]}, "task": {"type": "chief", "index": 0}})");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->master, "");
  const auto given = FromTfConfig(
      R"({"cluster": {"master": ["c:1"], "worker": {"1": "w1:1"}}, "session_master": "grpc://x",
          "task": {"type": "worker", "index": 1}, "service": {"port": 1}})");
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->master, "grpc://x");
  EXPECT_EQ(given->service, R"({"port":1})");
  EXPECT_EQ(given->cluster.at("worker"), (std::vector<std::string>{"", "w1:1"}));
}

TEST(TfConfigTest, WithoutAClusterThereIsOneProcess) {
  for (const char* json : {"", "{}", R"({"cluster": {}})", R"({"task": {"type": "worker"}})",
                           R"({"task": {"index": 0}, "cluster": null})"}) {
    const auto config = FromTfConfig(json);
    ASSERT_TRUE(config.ok()) << json << config.status();
    EXPECT_EQ(config->task_type, "worker");
    EXPECT_TRUE(config->is_chief);
    EXPECT_EQ(config->num_worker_replicas, 1);
    EXPECT_EQ(config->global_id_in_cluster, 0);
  }
}

TEST(TfConfigTest, GivesTheModelDirUnlessAnotherIsSet) {
  const auto config = FromTfConfig(R"({"model_dir": "there"})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->model_dir, "there");
  RunConfig same;
  same.model_dir = "there";
  EXPECT_TRUE(ApplyTfConfig(R"({"model_dir": "there"})", &same).ok());
}

// Every error of TF_CONFIG has its own message.
TEST(TfConfigTest, EachErrorHasItsMessage) {
  const std::string task = R"("task": {"type": "worker", "index": 0})";
  const struct {
    std::string json;
    std::string message;
  } cases[] = {
      {"{", "not JSON"},
      {"[]", "must be a JSON object"},
      {std::string(100, '['), "nested too deeply"},
      {R"({"cluster": []})", "\"cluster\" must be an object"},
      {R"({"cluster": {"chief": "c:1"}})", "the tasks of job 'chief' must be a list"},
      {R"({"cluster": {"chief": [7]}})", "the address of task 0 of job 'chief'"},
      {R"({"cluster": {"ps": {"x": "p:1"}}})", "the task index of job 'ps' must be a whole number"},
      {R"({"cluster": {"ps": {"-1": "p:1"}}})", "job 'ps' has no task -1"},
      {StrCat("{", kCluster, R"(, "task": 7})"), "\"task\" must be an object"},
      {StrCat(R"({"cluster": {"worker": ["w:1"]}, )", task, "}"),
       "it must have one \"chief\" node"},
      {StrCat(R"({"cluster": {"chief": []}, )", task, "}"), "it must have one \"chief\" node"},
      {StrCat(R"({"cluster": {"chief": ["a:1", "b:1"]}, )", task, "}"),
       "must have only one \"chief\" node, it has 2"},
      {StrCat(R"({"cluster": {"master": ["a:1", "b:1"]}, )", task, "}"),
       "must have only one \"master\" node"},
      {StrCat("{", kCluster, R"(, "task": {"index": 0}})"), "the task's type must be set"},
      {StrCat("{", kCluster, R"(, "task": {"type": "worker"}})"), "the task's index must be set"},
      {StrCat("{", kCluster, R"(, "task": {"type": "worker", "index": -1}})"),
       "the task's index must be >= 0, given: -1"},
      {StrCat("{", kCluster, R"(, "task": {"type": "worker", "index": 1.5}})"),
       "the task's index must be a whole number, given: 1.5"},
      {StrCat("{", kCluster, R"(, "task": {"type": "worker", "index": 18446744073709551615}})"),
       "the task's index must be a whole number, given: 18446744073709551615"},
      {StrCat("{", kCluster, R"(, "task": {"type": 7, "index": 0}})"), "\"type\" must be a string"},
      {StrCat("{", kCluster, R"(, "task": {"type": "helper", "index": 0}})"),
       "'helper' is not a task type of the cluster (chief: 1 task, ps: 2 tasks, worker: 3 tasks)"},
      {StrCat("{", kCluster, R"(, "task": {"type": "worker", "index": 3}})"),
       "the cluster has no task 3 of type 'worker'"},
      {R"({"cluster": {"chief": ["c:1"], "master": ["m:1"]}})", "job \"chief\" is not supported"},
      {R"({"cluster": {"master": ["m:1"]}, "task": {"type": "evaluator", "index": 0}})",
       "task type \"evaluator\" is not supported"},
      {R"({"task": {"type": "chief"}})", "the task's type must be worker, given: 'chief'"},
      {R"({"task": {"index": 1}})", "the task's index must be 0, given: 1"},
      {R"({"service": "x"})", "\"service\" must be an object, given: \"x\""},
      {R"({"model_dir": ""})", "model_dir should be non-empty"},
      {R"({"model_dir": "other"})", "model_dir is 'other', but 'model' was given"},
      {R"({"session_master": 7})", "\"session_master\" must be a string"},
  };
  for (const auto& test : cases) {
    RunConfig config = GoodConfig();
    config.task_id = 42;
    const absl::Status status = ApplyTfConfig(test.json, &config);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << test.json;
    EXPECT_THAT(std::string(status.message()),
                testing::AllOf(testing::StartsWith("TF_CONFIG: "), HasSubstr(test.message)));
    EXPECT_EQ(config.task_id, 42) << "changed by " << test.json;
  }
}

}  // namespace
}  // namespace muster::train
