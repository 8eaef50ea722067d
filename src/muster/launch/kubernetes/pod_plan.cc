#include "muster/launch/kubernetes/pod_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"

#include "muster/job/pod_template.h"
#include "muster/launch/kubernetes/native_pod.h"

namespace muster::launch::kubernetes {
namespace {

constexpr std::string_view kPortName = "tfjob-port";

std::string Key(std::string_view name) { return std::string(name); }

// The labels by which the service finds its pod.
Json LabelsOf(const TrainingJob& job, job::TaskId task) {
  return {{Key(kOperatorLabel), kOperatorName},
          {Key(kJobLabel), job.spec.name},
          {Key(kTypeLabel), job::TypeName(task.type)},
          {Key(kIndexLabel), StrCat(task.index)}};
}

// Those of tf-operator for v1alpha1, by which people of that time look for pods.
void AddLegacyLabels(const TrainingJob& job, job::TaskId task, Json* labels) {
  if (!job.spec.legacy_labels) return;
  (*labels)["kubeflow.org"] = "";
  (*labels)["job_type"] = absl::AsciiStrToUpper(ToAbsl(job::TypeName(task.type)));
  (*labels)["runtime_id"] = job.runtime_id;
  (*labels)["tf_job_name"] = job.spec.name;
  (*labels)["task_index"] = StrCat(task.index);
}

// The job's master by TFJob's rule: the chief or master, else worker 0.
bool IsMaster(const job::JobSpec& spec, job::TaskId task) {
  return task.type == spec.leader().value_or(job::TaskType::kWorker) && task.index == 0;
}

// Of the type's template: the port named tfjob-port; 0: it has none.
int FindPort(const Json& pod_template) {
  const Json* const container = FindContainer(pod_template);
  if (container == nullptr) return 0;
  const Json& ports = Child(*container, "ports");
  if (!ports.is_array()) return 0;
  for (const Json& port : ports) {
    if (GetText(port, "name") == kPortName) {
      return static_cast<int>(GetNumber(port, "containerPort"));
    }
  }
  return 0;
}

// The service has the ports of the task's container.
Json MakePorts(const Json& pod_template, int task_port) {
  Json made = Json::array();
  const auto add = [&](const std::string& name, int64_t port) {
    made.push_back({{"name", name}, {"port", port}, {"targetPort", port}});
  };
  const Json* const container = FindContainer(pod_template);
  const Json& ports = container == nullptr ? Json::array() : Child(*container, "ports");
  bool has_own = false;
  for (const Json& port : ports) {
    const std::string name = GetText(port, "name");
    if (name.empty()) continue;  // a service of several ports has names for all of them
    has_own = has_own || name == kPortName;
    add(name, GetNumber(port, "containerPort"));
  }
  if (!has_own) add(Key(kPortName), task_port);
  return made;
}

int GetPort(const job::JobSpec& spec, job::TaskType type) {
  const int port = FindPort(spec.replicas.at(type).pod_template);
  return port == 0 ? job::kDefaultPort : port;
}

// The kubelet puts the last lines of the container, if it fails, into the pod's status.
void KeepLastLines(Json* container) {
  if (!container->is_object() || container->contains("terminationMessagePolicy")) return;
  (*container)["terminationMessagePolicy"] = "FallbackToLogsOnError";
}

std::string_view GetRestartPolicy(const TrainingJob& job, job::TaskType type) {
  if (!RestartsInPlace(job, type)) return "Never";
  return job::RestartPolicyName(job.spec.replicas.at(type).restart_policy);
}

}  // namespace

std::string GetObjectName(const job::JobSpec& spec, job::TaskId task) {
  return StrCat(spec.name, "-", job::TaskName(task));
}

const Json* FindContainer(const Json& pod_template) {
  const Json& containers = Child(Child(pod_template, "spec"), "containers");
  if (!containers.is_array()) return nullptr;
  for (const Json& container : containers) {
    if (GetText(container, "name") == kContainerName) return &container;
  }
  return containers.size() == 1 ? &containers[0] : nullptr;
}

std::vector<std::string> GetWords(const Json& container) {
  std::vector<std::string> words;
  for (const char* const field : {"command", "args"}) {
    const Json& list = Child(container, field);
    if (!list.is_array()) continue;
    for (const Json& word : list) {
      if (word.is_string()) words.push_back(word.get<std::string>());
    }
  }
  return words;
}

Json MakeOwner(const TrainingJob& job) {
  return Json::array({{{"apiVersion", kTfJobs.group_version},
                       {"kind", "TFJob"},
                       {"name", job.spec.name},
                       {"uid", job.uid},
                       {"controller", true},
                       {"blockOwnerDeletion", true}}});
}

job::Cluster GetCluster(const TrainingJob& job, const PodPlanOptions& options) {
  job::Cluster cluster;
  const std::string domain =
      options.cluster_domain.empty() ? "" : StrCat(".", options.cluster_domain);
  for (const auto& [type, replica] : job.spec.replicas) {
    const bool may_grow = type == job::TaskType::kWorker && IsNative(job, type);
    const int most = may_grow ? job.spec.max_workers.value_or(0) : 0;
    for (int index = 0; index < std::max(replica.replicas, most); ++index) {
      cluster[{type, index}] =
          StrCat(GetObjectName(job.spec, {type, index}), ".", job.spec.name_space, ".svc", domain,
                 ":", GetPort(job.spec, type));
    }
  }
  return cluster;
}

bool RestartsInPlace(const TrainingJob& job, job::TaskType type) {
  const job::JobSpec& spec = job.spec;
  const job::RestartPolicy policy = spec.replicas.at(type).restart_policy;
  if (IsNative(job, type)) return false;
  if (policy != job::RestartPolicy::kAlways && policy != job::RestartPolicy::kOnFailure) {
    return false;
  }
  return spec.failure_policy.empty() && spec.restart_budget == job::RestartBudget() &&
         spec.restart_scope == job::RestartScope::kTask && !spec.fail_fast;
}

absl::StatusOr<Json> MakePod(const TrainingJob& job, job::TaskId task, int64_t incarnation,
                             const PodPlanOptions& options) {
  const auto replica = job.spec.replicas.find(task.type);
  if (replica == job.spec.replicas.end()) {
    return absl::InvalidArgumentError(StrCat(job::TaskName(task), " is no task of the job"));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string tf_config,
                          job::TfConfig(job.spec, GetCluster(job, options), task, job.tf_config));
  Json pod_template = replica->second.pod_template;
  if (FindPort(pod_template) == 0) job::SetTaskPort(job::kDefaultPort, &pod_template);
  if (!tf_config.empty()) job::SetEnv("TF_CONFIG", tf_config, &pod_template);
  if (IsNative(job, task.type)) {
    AddNativeTask(job, task, incarnation, /*is_alone=*/tf_config.empty(), &pod_template);
  }
  if (Json* const container = job::GetContainer(&pod_template); container != nullptr) {
    KeepLastLines(container);
  }
  Json& spec = pod_template["spec"];
  if (const auto found = spec.find("initContainers"); found != spec.end() && found->is_array()) {
    for (Json& container : *found) KeepLastLines(&container);
  }
  Json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}};
  Json& metadata = pod["metadata"];
  metadata["name"] = GetObjectName(job.spec, task);
  Json labels = Child(Child(pod_template, "metadata"), "labels");
  if (!labels.is_object()) labels = Json::object();
  labels.update(LabelsOf(job, task));
  labels[Key(kJobUidLabel)] = job.uid;
  if (IsMaster(job.spec, task)) labels[Key(kRoleLabel)] = "master";
  AddLegacyLabels(job, task, &labels);
  metadata["labels"] = std::move(labels);
  Json annotations = Child(Child(pod_template, "metadata"), "annotations");
  if (!annotations.is_object()) annotations = Json::object();
  annotations[Key(kIncarnationAnnotation)] = StrCat(incarnation);
  metadata["annotations"] = std::move(annotations);
  metadata["ownerReferences"] = MakeOwner(job);
  pod["spec"] = Child(pod_template, "spec");
  pod["spec"]["restartPolicy"] = GetRestartPolicy(job, task.type);
  return pod;
}

Json MakeService(const TrainingJob& job, job::TaskId task) {
  const int port = GetPort(job.spec, task.type);
  Json service = {{"apiVersion", "v1"}, {"kind", "Service"}};
  service["metadata"]["name"] = GetObjectName(job.spec, task);
  service["metadata"]["labels"] = LabelsOf(job, task);
  AddLegacyLabels(job, task, &service["metadata"]["labels"]);
  service["metadata"]["ownerReferences"] = MakeOwner(job);
  Json& spec = service["spec"];
  spec["clusterIP"] = "None";
  spec["selector"] = LabelsOf(job, task);
  spec["selector"][Key(kJobUidLabel)] = job.uid;
  // A task's peers look for it before it is ready.
  spec["publishNotReadyAddresses"] = true;
  spec["ports"] = MakePorts(job.spec.replicas.at(task.type).pod_template, port);
  return service;
}

}  // namespace muster::launch::kubernetes
