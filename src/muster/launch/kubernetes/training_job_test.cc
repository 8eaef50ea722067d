#include "muster/launch/kubernetes/training_job.h"

#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/launch/kubernetes/kubernetes_test_support.h"

namespace muster::launch::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string Refusal(const Json& object) {
  return std::string(ToStd(ReadTrainingJob(object).status().message()));
}

TEST(TrainingJobTest, LeavesOutAndNamesWhatItDoesNotKnow) {
  Json object = JobObject({{"Worker", ReplicaObject(2)}}, {{"backoffLimit", 3}, {"nap", 1}});
  object["spec"]["elasticPolicy"] = Json::object();
  object["spec"]["tfReplicaSpecs"]["Worker"]["speed"] = 1;
  object["metadata"]["annotations"] = {{"muster/failFast", "true"},
                                       {"muster/failfast", "true"},
                                       {"muster/masterAsChief", "true"},
                                       {"team/x", "kept"}};
  const TrainingJob job = ReadJobObject(object);
  EXPECT_EQ(job.uid, "job-uid");
  EXPECT_EQ(job.spec.name_space, "team");
  EXPECT_EQ(job.spec.count(job::TaskType::kWorker), 2);
  EXPECT_EQ(job.spec.backoff_limit, 3);
  EXPECT_TRUE(job.spec.fail_fast);
  EXPECT_TRUE(job.tf_config.master_as_chief);
  EXPECT_THAT(job.unknown_fields,
              ElementsAre("metadata.annotations.muster/failfast", "spec.elasticPolicy",
                          "spec.runPolicy.nap", "spec.tfReplicaSpecs.Worker.speed"));
}

TEST(TrainingJobTest, ReadsTheFirstVersionsForm) {
  Json object = JobObject(Json::object());
  object["spec"].erase("tfReplicaSpecs");
  Json replica = {{"replicas", 1}, {"tfReplicaType", "MASTER"}};
  replica["template"] = ReplicaObject(1)["template"];
  object["spec"]["replicaSpecs"] = Json::array({replica});
  const TrainingJob job = ReadJobObject(object);
  EXPECT_TRUE(job.spec.legacy_labels);
  EXPECT_EQ(job.spec.leader(), job::TaskType::kMaster);
  EXPECT_THAT(job.runtime_id, SizeIs(4));
  EXPECT_EQ(job.runtime_id, ReadJobObject(object).runtime_id);
  object["spec"]["RuntimeId"] = "76no";
  EXPECT_EQ(ReadJobObject(object).runtime_id, "76no");
}

TEST(TrainingJobTest, AnElasticTrainingHasAsManyWorkersAsItAllows) {
  Json replica = ReplicaObject(0);
  replica["template"]["spec"]["containers"][0]["command"] = {"muster", "worker", "/m.yaml"};
  Json object = JobObject({{"Chief", replica}, {"Worker", replica}});
  object["spec"]["tfReplicaSpecs"]["Chief"]["replicas"] = 1;
  object["metadata"]["annotations"] = {{"muster/workers", "1-2"}};
  for (const auto& [asked, run, note] : {std::tuple(0, 1, "no fewer than 1"), std::tuple(1, 1, ""),
                                         std::tuple(2, 2, ""), std::tuple(8, 2, "allows 2")}) {
    object["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] = asked;
    const TrainingJob job = ReadJobObject(object);
    EXPECT_EQ(job.spec.count(job::TaskType::kWorker), run) << asked;
    const auto expected = std::string(note).empty() ? 0 : 1;
    ASSERT_THAT(job.notes, SizeIs(expected)) << asked;
    if (expected > 0) {
      EXPECT_THAT(job.notes[0], HasSubstr(note));
    }
  }
}

TEST(TrainingJobTest, SaysWhatHasNoEffectInPods) {
  Json object = JobObject({{"Worker", ReplicaObject(1)}, {"Evaluator", ReplicaObject(1)}});
  EXPECT_THAT(ReadJobObject(object).notes, SizeIs(0));
  object["metadata"]["annotations"] = {{"muster/files", "[a]"}, {"muster/finishTimeout", "60s"}};
  EXPECT_THAT(ReadJobObject(object).notes,
              ElementsAre(HasSubstr("muster/files"), HasSubstr("does not end the evaluator")));
}

TEST(TrainingJobTest, RefusesWhatKubeflowRefuses) {
  Json object = JobObject({{"Worker", ReplicaObject(1)}});
  Json& containers = object["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"];
  containers[0]["name"] = "main";
  EXPECT_THAT(Refusal(object), HasSubstr("no container named tensorflow"));
  containers[0].erase("image");
  EXPECT_THAT(Refusal(object), HasSubstr("image is undefined in the container main"));
  containers.clear();
  EXPECT_THAT(Refusal(object), HasSubstr("containers definition expected"));
}

TEST(TrainingJobTest, KnowsWhoManagesAJob) {
  const Json replicas = {{"Worker", ReplicaObject(1)}};
  EXPECT_FALSE(IsManagedElsewhere(JobObject(replicas)));
  EXPECT_FALSE(
      IsManagedElsewhere(JobObject(replicas, {{"managedBy", "kubeflow.org/training-operator"}})));
  EXPECT_TRUE(
      IsManagedElsewhere(JobObject(replicas, {{"managedBy", "kueue.x-k8s.io/multikueue"}})));
}

}  // namespace
}  // namespace muster::launch::kubernetes
