#include "muster/job/manifest.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/job/pod_template.h"

namespace muster::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kTfJob = R"(apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: dist-mnist
  namespace: training
  labels: {team: ads}
  annotations:
    note: kept
    muster/restartScope: gang
    muster/failurePolicy: '[{"role": "worker", "exitCodes": [3], "action": "failJob"}]'
    muster/progressTimeout: 10m
spec:
  runPolicy:
    cleanPodPolicy: Running
    ttlSecondsAfterFinished: 100
    backoffLimit: 4
    schedulingPolicy: {minAvailable: 3, queue: q}
  successPolicy: AllWorkers
  tfReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: OnFailure
      template:
        metadata: {annotations: {sidecar.istio.io/inject: "false"}}
        spec:
          containers:
          - name: tensorflow
            image: registry/mnist:1
            command: [python, train.py]
            args: ["--steps", "100"]
            env: [{name: A, value: "1"}]
            resources: {limits: {cpu: 500m, memory: 2Gi, nvidia.com/gpu: 1}}
            volumeMounts: [{name: data, mountPath: /data}]
          volumes: [{name: data, persistentVolumeClaim: {claimName: nas}}]
    ps:
      template: {spec: {containers: [{name: tensorflow, image: i, command: [ps]}]}}
status: {conditions: [{type: Running}]}
)";

constexpr const char* kLegacy = R"(apiVersion: kubeflow.org/v1alpha1
kind: TFJob
metadata: {name: old}
spec:
  cleanupPodPolicy: Running
  replicaSpecs:
  - replicas: 1
    tfReplicaType: MASTER
    tfPort: 3333
    template: {spec: {restartPolicy: OnFailure, containers: [{name: tensorflow, command: [a]}]}}
  - {replicas: 2, tfReplicaType: WORKER, template: {spec: {containers: [{name: tensorflow, command: [a]}]}}}
  - {tfReplicaType: PS, template: {spec: {restartPolicy: Never, containers: [{name: tensorflow, command: [a]}]}}}
  terminationPolicy: {chief: {replicaName: MASTER, replicaIndex: 0}}
)";

std::string Error(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  return std::string(ToStd(ParseManifest(text, "job.yaml").status().message()));
}

TEST(Manifest, ReadsATfJob) {
  const auto manifest = ParseManifest(kTfJob, "job.yaml");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  const JobSpec& spec = manifest->spec;
  EXPECT_EQ(spec.name, "dist-mnist");
  EXPECT_EQ(spec.name_space, "training");
  EXPECT_EQ(spec.count(TaskType::kWorker), 2);
  EXPECT_EQ(spec.count(TaskType::kPs), 1);
  EXPECT_EQ(spec.replicas.at(TaskType::kPs).restart_policy, RestartPolicy::kNever);
  EXPECT_EQ(spec.clean_pod_policy, CleanPodPolicy::kRunning);
  EXPECT_EQ(spec.ttl_seconds, 100);
  EXPECT_EQ(spec.backoff_limit, 4);
  EXPECT_TRUE(spec.all_workers);
  EXPECT_EQ(spec.restart_scope, RestartScope::kGang);
  EXPECT_EQ(spec.progress_timeout_seconds, 600);
  ASSERT_EQ(spec.failure_policy.size(), 1u);
  EXPECT_EQ(spec.failure_policy[0].action, FailureRule::Action::kFailJob);
  EXPECT_EQ(spec.metadata["annotations"].dump(), R"({"note":"kept"})");
  EXPECT_THAT(manifest->notes, IsEmpty());
}

TEST(Manifest, AModelFileIsNamedWithItsVerb) {
  EXPECT_EQ(ToStd(ParseManifest("inputs: {x: float}\nmodel: {type: linear}\n", "model.yaml")
                      .status()
                      .message()),
            "model.yaml: is a model file, and no TFJob: muster train model.yaml --train DATA "
            "--model-dir FOLDER trains it");
}

TEST(Manifest, AJobsNameMayHaveAnUnderscore) {
  std::string text(kTfJob);
  text.replace(text.find("name: dist-mnist"), 16, "name: dist_mnist");
  const auto manifest = ParseManifest(text, "job.yaml");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->spec.name, "dist_mnist");
}

TEST(Manifest, PrintsBackToAnEqualSpec) {
  for (const char* text : {kTfJob, kLegacy}) {
    const auto manifest = ParseManifest(text, "job.yaml");
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    const std::string printed = PrintManifest(manifest->spec);
    const auto again = ParseManifest(printed, "printed.yaml");
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << printed;
    EXPECT_EQ(again->spec, manifest->spec) << printed;
  }
}

TEST(Manifest, AModelFolderIsAnAnnotation) {
  std::string text = kTfJob;
  const std::string other = "muster/progressTimeout: 10m";
  text.replace(text.find(other), other.size(), "muster/modelDir: /models/mnist");
  const auto manifest = ParseManifest(text, "job.yaml");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->spec.model_dir, "/models/mnist");
  EXPECT_EQ(ParseManifest(PrintManifest(manifest->spec), "printed.yaml")->spec, manifest->spec);
}

TEST(Manifest, ReadsV1Alpha1) {
  const auto manifest = ParseManifest(kLegacy, "old.yaml");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  const JobSpec& spec = manifest->spec;
  EXPECT_EQ(spec.leader(), TaskType::kMaster);
  EXPECT_EQ(spec.count(TaskType::kWorker), 2);
  EXPECT_EQ(spec.replicas.at(TaskType::kPs).restart_policy, RestartPolicy::kNever);
  EXPECT_EQ(spec.replicas.at(TaskType::kWorker).restart_policy, RestartPolicy::kOnFailure);
  EXPECT_TRUE(spec.legacy_labels);
  EXPECT_EQ(spec.clean_pod_policy, CleanPodPolicy::kRunning);
  const auto process = ParseProcess(spec.replicas.at(TaskType::kMaster).pod_template);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(process->port, 3333);
}

TEST(Manifest, OtherDocumentsBesideTheTfJobAreNamed) {
  const auto manifest = ParseManifest(
      StrCat("kind: PersistentVolumeClaim\nmetadata: {name: nas}\n---\n", kTfJob), "all.yaml");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_THAT(manifest->notes, ElementsAre(HasSubstr("PersistentVolumeClaim")));
  EXPECT_THAT(ParseManifest(StrCat("kind: Service\n---\n", kTfJob, "---\nkind: [\n"), "all.yaml")
                  .status()
                  .message(),
              HasSubstr("all.yaml:42: not YAML"));
  EXPECT_FALSE(ParseManifest("a: 1\n---\n}\n", "stray").ok());
}

TEST(Manifest, ReadsV1Alpha2AsV1) {
  std::string text = kTfJob;
  text.replace(text.find("kubeflow.org/v1"), 15, "kubeflow.org/v1alpha2");
  const auto old = ParseManifest(text, "old.yaml");
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_EQ(old->spec, ParseManifest(kTfJob, "job.yaml")->spec);
}

TEST(Manifest, AListIsReadAsItsItems) {
  const char* const list = R"({"kind": "List", "apiVersion": "v1", "items": [
    {"kind": "PersistentVolumeClaim", "metadata": {"name": "nas"}},
    {"kind": "TFJob", "apiVersion": "kubeflow.org/v1", "metadata": {"name": "j"}, "spec":
      {"tfReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [{"name": "tensorflow"}]}}}}}}
  ]})";
  const auto manifest = ParseManifest(list, "list.json");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->spec.name, "j");
  EXPECT_THAT(manifest->notes, ElementsAre(HasSubstr("PersistentVolumeClaim")));
  EXPECT_THAT(ParseManifest("kind: List\nitems: 7\n", "bad").status().message(),
              HasSubstr("items"));
  EXPECT_THAT(ParseManifest("kind: List\nitems: []\n", "none").status().message(),
              HasSubstr("holds no TFJob"));
}

TEST(Manifest, ErrorsNameLineFieldAndTheNearestWord) {
  EXPECT_THAT(
      Error(kTfJob, "  successPolicy: AllWorkers", "  sucessPolicy: AllWorkers"),
      HasSubstr("job.yaml:18: spec: unknown key 'sucessPolicy' (did you mean 'successPolicy'?)"));
  EXPECT_THAT(Error(kTfJob, "OnFailure", "OnFailur"), HasSubstr("did you mean 'OnFailure'?"));
  EXPECT_THAT(Error(kTfJob, "replicas: 2", "replicas: two"),
              HasSubstr("'two' is not a whole number"));
  EXPECT_THAT(Error(kTfJob, "    Worker:", "    Worked:"), HasSubstr("did you mean 'Worker'?"));
  EXPECT_THAT(Error(kTfJob, "muster/restartScope", "muster/restartScpe"),
              HasSubstr("did you mean 'restartScope'?"));
  EXPECT_THAT(Error(kTfJob, "failJob", "failjob"), HasSubstr("did you mean 'failJob'?"));
  EXPECT_THAT(Error(kTfJob, "kubeflow.org/v1", "kubeflow.org/v2"), HasSubstr("unknown version"));
  EXPECT_THAT(Error(kTfJob, "name: dist-mnist", "name: a/b"), HasSubstr("the job's name 'a/b'"));
  EXPECT_THAT(Error(kTfJob, "name: dist-mnist", "name: dist_"), HasSubstr("do not end in '-' or"));
  EXPECT_THAT(Error(kTfJob, "TFJob", "Pod"), HasSubstr("must be TFJob"));
  EXPECT_THAT(Error(kLegacy, "replicas: 1\n", "replicas: 2\n"), HasSubstr("one master at most"));
  EXPECT_THAT(Error(kLegacy, "replicaName: MASTER", "replicaName: PS"),
              HasSubstr("cannot be its chief"));
  const std::string text_template =
      "apiVersion: kubeflow.org/v1alpha1\nkind: TFJob\nmetadata: {name: old}\n"
      "spec: {replicaSpecs: [{tfPort: 3333, template: text}]}";
  EXPECT_THAT(ParseManifest(text_template, "a").status().message(),
              HasSubstr("must be a pod template: a map with 'spec'"));
}

TEST(Manifest, HostileFilesAreRefusedBeforeTheyCost) {
  EXPECT_THAT(ParseManifest(std::string(100 << 20, 'x'), "big").status().message(),
              HasSubstr("at most 1048576"));
  EXPECT_THAT(ParseManifest(std::string(500'000, '['), "deep").status().message(),
              HasSubstr("deeper than"));
  EXPECT_THAT(Error(kTfJob, "note: kept", "n\xffte: kept"), HasSubstr("not UTF-8"));
  EXPECT_FALSE(ParseManifest("", "empty").ok());
  EXPECT_FALSE(ParseManifest("a: &a [*a]", "loop").ok());
}

TEST(Manifest, WhatAJobFromFlagsAsksForComesBack) {
  JobSpec spec;
  spec.name = "j";
  spec.replicas[TaskType::kWorker] = {.replicas = 2, .pod_template = TemplateFor({"true"})};
  spec.all_workers = spec.needs_evaluator = spec.fail_fast = true;
  const auto manifest = ParseManifest(PrintManifest(spec), "printed");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->spec, spec);
}

TEST(PodTemplate, GivesTheProcess) {
  const auto manifest = ParseManifest(kTfJob, "job.yaml");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  const Json& pod_template = manifest->spec.replicas.at(TaskType::kWorker).pod_template;
  const auto process = ParseProcess(pod_template);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_THAT(process->command, ElementsAre("python", "train.py", "--steps", "100"));
  EXPECT_EQ(process->cpus, 0.5);
  EXPECT_EQ(process->memory_bytes, int64_t{2} << 30);
  EXPECT_EQ(process->gpus, 1);
  EXPECT_EQ(process->port, kDefaultPort);
  ASSERT_EQ(process->volumes.size(), 1u);
  EXPECT_EQ(process->volumes[0].claim, "nas");
  EXPECT_THAT(UnusedFields(pod_template), ElementsAre("image"));
}

TEST(PodTemplate, WhatHasNoEffectHereIsNamed) {
  Json pod_template = TemplateFor({"run"});
  EXPECT_THAT(UnusedFields(pod_template), IsEmpty());
  pod_template["spec"]["terminationGracePeriodSeconds"] = 30;
  Json& resources = pod_template["spec"]["containers"][0]["resources"];
  resources["limits"] = {{"cpu", "1"}};
  resources["requests"] = {{"cpu", "500m"}, {"memory", "2Gi"}};
  EXPECT_THAT(UnusedFields(pod_template),
              ElementsAre("terminationGracePeriodSeconds", "the request of memory"));
  JobSpec spec;
  EXPECT_THAT(UnusedPolicies(spec), IsEmpty());
  spec.clean_pod_policy = CleanPodPolicy::kAll;
  spec.scheduling_policy = {{"queue", "q"}};
  spec.managed_by = "kueue.x-k8s.io/multikueue";
  EXPECT_THAT(UnusedPolicies(spec), ElementsAre("cleanPodPolicy", "schedulingPolicy", "managedBy"));
}

TEST(PodTemplate, ReplacesVariablesAsKubernetesDoes) {
  Json pod_template = TemplateFor({"run"});
  Json& container = pod_template["spec"]["containers"][0];
  container["env"] = {{{"name", "N"}, {"value", "7"}}};
  container["args"] = {"--n=$(N)", "$$(N)", "$(UNKNOWN)", "$N", "50%$"};
  const auto process = ParseProcess(pod_template);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_THAT(process->command, ElementsAre("run", "--n=7", "$(N)", "$(UNKNOWN)", "$N", "50%$"));
  const auto plain = ParseProcess(TemplateFor({"sh", "-c", "echo $(HOME) $$"}));
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_THAT(plain->command, ElementsAre("sh", "-c", "echo $(HOME) $$"));
}

TEST(PodTemplate, WhatCannotRunHereSaysWhy) {
  EXPECT_THAT(ParseProcess(Json::object()).status().message(), HasSubstr("no container"));
  Json pod_template = {{"spec", {{"containers", Json::array({{{"name", "tensorflow"}}})}}}};
  EXPECT_THAT(ParseProcess(pod_template).status().message(), HasSubstr("no 'command'"));
  Json& container = pod_template["spec"]["containers"][0];
  container["command"] = {"a", 1};
  EXPECT_THAT(ParseProcess(pod_template).status().message(), HasSubstr("1 needs quotes"));
  container["command"] = {"a"};
  container["env"] = {{{"name", "S"}, {"valueFrom", {{"secretKeyRef", {{"name", "s"}}}}}}};
  EXPECT_THAT(ParseProcess(pod_template).status().message(), HasSubstr("--env S=VALUE"));
}

TEST(PodTemplate, AFieldOfThePodIsWhatStandsForItHere) {
  Json pod_template = TemplateFor({"run", "$$(POD)"});
  Json& container = pod_template["spec"]["containers"][0];
  const auto field = [](const char* name, const char* path) {
    return Json{{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
  };
  container["env"] = {field("POD", "metadata.name"),
                      field("SPACE", "metadata.namespace"),
                      field("NODE", "spec.nodeName"),
                      field("IP", "status.podIP"),
                      {{"name", "WHERE"}, {"value", "$(POD) on $(NODE), $(LATER)"}},
                      {{"name", "LATER"}, {"value", "x"}}};
  container["args"] = {"--name=$(POD)"};
  const auto process = ParseProcess(pod_template);
  ASSERT_TRUE(process.ok()) << process.status();
  using testing::Pair;
  EXPECT_THAT(
      process->env,
      ElementsAre(Pair("POD", "{job}-{type}-{index}"), Pair("SPACE", "{namespace}"),
                  Pair("NODE", "{node}"), Pair("IP", "{host}"),
                  Pair("WHERE", "{job}-{type}-{index} on {node}, $(LATER)"), Pair("LATER", "x")));
  EXPECT_EQ(process->command.back(), "--name={job}-{type}-{index}");
}

TEST(PodTemplate, AllVariablesOfKubernetesObjectsAreNamedAtOnce) {
  Json pod_template = TemplateFor({"run"});
  Json& env = pod_template["spec"]["containers"][0]["env"];
  for (const char* const name : {"A", "B"}) {
    env.push_back({{"name", name}, {"valueFrom", {{"secretKeyRef", {{"name", "s"}}}}}});
  }
  EXPECT_THAT(ParseProcess(pod_template).status().message(),
              testing::AllOf(HasSubstr("env A, B"), HasSubstr("--env A=VALUE --env B=VALUE")));
}

TEST(PodTemplate, AnEntryPointIsForAContainerWithoutCommand) {
  Json pod_template = {{"spec", {{"containers", Json::array({{{"name", "tensorflow"}}})}}}};
  pod_template["spec"]["containers"][0]["args"] = {"--steps=3"};
  EXPECT_FALSE(HasCommand(pod_template));
  SetEntryPoint({"python", "$HOME.py"}, &pod_template);
  EXPECT_THAT(ParseProcess(pod_template)->command, ElementsAre("python", "$HOME.py", "--steps=3"));
  SetEntryPoint({"other"}, &pod_template);
  EXPECT_THAT(ParseProcess(pod_template)->command, ElementsAre("python", "$HOME.py", "--steps=3"));
}

TEST(PodTemplate, GpusMayBeSetOrLeftOut) {
  Json pod_template = TemplateFor({"run"});
  EXPECT_FALSE(SetGpus(0, &pod_template));
  EXPECT_TRUE(SetGpus(2, &pod_template));
  EXPECT_EQ(ParseProcess(pod_template)->gpus, 2);
  EXPECT_TRUE(SetGpus(0, &pod_template));
  EXPECT_EQ(ParseProcess(pod_template)->gpus, 0);
}

TEST(Durations, AreGos) {
  for (const char* text : {"0s", "90s", "5m", "1h30m", "2h", "1h1m1s"}) {
    const auto seconds = ParseDuration(text);
    ASSERT_TRUE(seconds.ok()) << seconds.status();
    EXPECT_EQ(ParseDuration(PrintDuration(*seconds)).value(), *seconds);
  }
  EXPECT_EQ(ParseDuration("250ms").value(), 0.25);
  EXPECT_EQ(PrintDuration(0.25), "250ms");
  EXPECT_EQ(ParseDuration("30").value(), 30);
  for (const char* text : {"", "x", "5 m", "-5s", "5d", "1h2", "1e400s"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
}

}  // namespace
}  // namespace muster::job
