#include "muster/launch/kubernetes/native_pod.h"

#include "absl/strings/escaping.h"

#include "muster/launch/kubernetes/kubernetes_test_support.h"
#include "muster/net/tls/certs.h"

namespace muster::launch::kubernetes {
namespace {

constexpr job::TaskType kWorker = job::TaskType::kWorker;

Json NativeReplica(int replicas, const std::string& policy = "ExitCode") {
  Json replica = ReplicaObject(replicas, policy);
  Json& container = replica["template"]["spec"]["containers"][0];
  container["command"] = {"/usr/bin/muster", "worker"};
  container["args"] = {"model.yaml"};
  return replica;
}

Json NativeJob(int workers) {
  return JobObject({{"Chief", NativeReplica(1)}, {"Worker", NativeReplica(workers)}});
}

std::string VariableOf(const Json& pod, const std::string& name) {
  for (const Json& each : pod["spec"]["containers"][0]["env"]) {
    if (each["name"] == name) return each["value"];
  }
  return "";
}

std::string Decoded(const Json& secret, const std::string& name) {
  std::string text;
  EXPECT_TRUE(absl::Base64Unescape(secret["data"][name].get<std::string>(), &text));
  return text;
}

TEST(NativePodTest, MusterWorkerIsNativeUnlessTheJobSaysOtherwise) {
  Json object = NativeJob(1);
  EXPECT_TRUE(IsNative(ReadJobObject(object), kWorker));
  EXPECT_FALSE(IsNative(ReadJobObject(object), job::TaskType::kPs));
  object["metadata"]["annotations"]["muster/native"] = "false";
  EXPECT_FALSE(IsNative(ReadJobObject(object), kWorker));
  Json other = JobObject({{"Worker", ReplicaObject(2)}});
  EXPECT_FALSE(IsNative(ReadJobObject(other), kWorker));
  EXPECT_FALSE(NeedsSecret(ReadJobObject(other)));
  other["metadata"]["annotations"]["muster/native"] = "true";
  EXPECT_TRUE(NeedsSecret(ReadJobObject(other)));
  EXPECT_TRUE(ReadJobObject(other).unknown_fields.empty());
}

TEST(NativePodTest, ThePodHasKeyCertificatesAndItsPlace) {
  const TrainingJob job = ReadJobObject(NativeJob(1));
  const Json pod = MakePod(job, kWorker0, 7, {}).value();
  EXPECT_EQ(VariableOf(pod, "MUSTER_KEY_FILE"), "/var/run/muster/data_key");
  EXPECT_EQ(VariableOf(pod, "MUSTER_CERTS"), "/var/run/muster");
  EXPECT_EQ(VariableOf(pod, "MUSTER_JOB"), "j");
  EXPECT_EQ(VariableOf(pod, "MUSTER_TASK"), "worker-0");
  EXPECT_EQ(VariableOf(pod, "MUSTER_INCARNATION"), "7");
  EXPECT_EQ(VariableOf(pod, "MUSTER_RENDEZVOUS_TIMEOUT"), "0");
  const Json& mount = pod["spec"]["containers"][0]["volumeMounts"][0];
  EXPECT_EQ(mount["mountPath"], "/var/run/muster");
  EXPECT_EQ(pod["spec"]["volumes"][0]["name"], mount["name"]);
  EXPECT_EQ(pod["spec"]["volumes"][0]["secret"]["secretName"], "j-muster-job-uid");
}

TEST(NativePodTest, WhatTheTemplateHasStays) {
  Json object = NativeJob(1);
  for (auto& [type, replica] : object["spec"]["tfReplicaSpecs"].items()) {
    replica["template"]["spec"]["containers"][0]["env"] =
        Json::array({{{"name", "MUSTER_KEY_FILE"}, {"value", "/key"}},
                     {{"name", "MUSTER_JOB"}, {"value", "k"}}});
  }
  const TrainingJob job = ReadJobObject(object);
  EXPECT_FALSE(NeedsSecret(job));
  const Json pod = MakePod(job, kWorker0, 1, {}).value();
  EXPECT_EQ(VariableOf(pod, "MUSTER_KEY_FILE"), "/key");
  EXPECT_EQ(VariableOf(pod, "MUSTER_JOB"), "k");
  EXPECT_EQ(VariableOf(pod, "MUSTER_CERTS"), "");
  EXPECT_FALSE(pod["spec"].contains("volumes"));
}

TEST(NativePodTest, WhoAsksForPlainTextIsGivenNoCertificates) {
  Json by_flag = NativeJob(1), by_variable = NativeJob(1);
  for (Json* const object : {&by_flag, &by_variable}) {
    Json& worker = (*object)["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"];
    Json& container = worker["containers"][0];
    if (object == &by_flag) {
      container["args"] = {"model.yaml", "--plain-text"};
    } else {
      container["env"] = Json::array({{{"name", "MUSTER_PLAIN_TEXT"}, {"value", "1"}}});
    }
    const Json pod = MakePod(ReadJobObject(*object), kWorker0, 1, {}).value();
    EXPECT_EQ(VariableOf(pod, "MUSTER_CERTS"), "");
    EXPECT_EQ(VariableOf(pod, "MUSTER_KEY_FILE"), "/var/run/muster/data_key");
  }
}

TEST(NativePodTest, OneTaskAloneNeedsNoSecret) {
  const TrainingJob job = ReadJobObject(JobObject({{"Worker", NativeReplica(1)}}));
  EXPECT_FALSE(NeedsSecret(job));
  const Json pod = MakePod(job, kWorker0, 1, {}).value();
  EXPECT_EQ(VariableOf(pod, "MUSTER_INCARNATION"), "1");
  EXPECT_EQ(VariableOf(pod, "MUSTER_KEY_FILE"), "");
}

TEST(NativePodTest, MusterRestartsNativeTasksItself) {
  const TrainingJob job = ReadJobObject(JobObject({{"Worker", NativeReplica(2, "OnFailure")}}));
  EXPECT_FALSE(RestartsInPlace(job, kWorker));
  EXPECT_EQ(MakePod(job, kWorker0, 1, {}).value()["spec"]["restartPolicy"], "Never");
}

TEST(NativePodTest, WorkersThatMayComeAreNamed) {
  Json object = NativeJob(2);
  object["metadata"]["annotations"]["muster/workers"] = "1-3";
  const TrainingJob job = ReadJobObject(object);
  EXPECT_EQ(GetCluster(job, {}).size(), 4U);
  object["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] = 5;
  const TrainingJob larger = ReadJobObject(object);
  EXPECT_EQ(larger.spec.count(kWorker), 3);
  ASSERT_EQ(larger.notes.size(), 1U);
  EXPECT_NE(larger.notes[0].find("muster/workers allows 3"), std::string::npos);
}

TEST(NativePodTest, TheSecretIsTheJobsAndGoodForItsNames) {
  const TrainingJob job = ReadJobObject(NativeJob(2));
  ASSERT_TRUE(NeedsSecret(job));
  const auto secret = MakeSecret(job, {.cluster_domain = "cluster.local"});
  ASSERT_TRUE(secret.ok()) << secret.status();
  EXPECT_EQ(GetName(*secret), GetSecretName(job));
  EXPECT_EQ(FindOwner(*secret)->uid, "job-uid");
  EXPECT_EQ(Decoded(*secret, "data_key").size(), 64U);
  const std::string authority = Decoded(*secret, "ca.pem");
  const std::string server = Decoded(*secret, "server.pem");
  for (const char* const task : {"chief-0", "worker-0", "worker-1"}) {
    const std::string host = StrCat("j-", task, ".team.svc.cluster.local");
    EXPECT_TRUE(net::CheckServerCertificate(authority, server, host).ok()) << host;
  }
  EXPECT_FALSE(
      net::CheckServerCertificate(authority, server, "j-worker-2.team.svc.cluster.local").ok());
  EXPECT_TRUE(
      net::CheckKey({.certificate = server, .key = Decoded(*secret, "server-key.pem")}).ok());
  const auto other = MakeSecret(job, {});
  EXPECT_NE((*other)["data"]["data_key"], (*secret)["data"]["data_key"]);
}

TEST(NativePodTest, TheNumberOfTasksStaysUnlessTheJobBeganAsOneThatMayChange) {
  job::JobStatus status;
  for (const int index : {0, 1}) status.tasks[{kWorker, index}].incarnation = index + 1;
  status.tasks[{job::TaskType::kChief, 0}].incarnation = 3;
  std::string note;
  const auto keep = [&](const Json& object, std::optional<int> most) {
    note.clear();
    return KeepTaskNumbers(ReadJobObject(object), status, most, &note);
  };
  EXPECT_FALSE(keep(NativeJob(2), 0));
  ASSERT_TRUE(keep(NativeJob(3), 0));
  EXPECT_EQ(keep(NativeJob(3), 0)->spec.count(kWorker), 2);
  EXPECT_NE(note.find("of Worker stays 2, though 3 are asked for"), note.npos) << note;
  EXPECT_EQ(keep(NativeJob(3), std::nullopt)->spec.count(kWorker), 2);
  Json object = NativeJob(3);
  object["metadata"]["annotations"]["muster/workers"] = "1-4";
  EXPECT_FALSE(keep(object, 4));
  EXPECT_FALSE(keep(object, std::nullopt));
  EXPECT_TRUE(note.empty());
  // The annotation came, grew or went while the job ran.
  EXPECT_EQ(keep(object, 0)->spec.count(kWorker), 2);
  object = NativeJob(6);
  object["metadata"]["annotations"]["muster/workers"] = "1-8";
  EXPECT_EQ(keep(object, 4)->spec.count(kWorker), 4);
  EXPECT_EQ(keep(object, 4)->spec.max_workers, 4);
  EXPECT_EQ(keep(NativeJob(3), 4)->spec.count(kWorker), 3);
  EXPECT_TRUE(note.empty());
  EXPECT_FALSE(keep(JobObject({{"Worker", ReplicaObject(3)}}), std::nullopt));
  status.tasks.clear();
  EXPECT_FALSE(keep(NativeJob(3), 0));
}

}  // namespace
}  // namespace muster::launch::kubernetes
