#include "muster/launch/kubernetes/pod_plan.h"

#include <utility>

#include "absl/strings/ascii.h"

#include "muster/job/pod_template.h"
#include "muster/job/tf_config.h"

namespace muster::launch::kubernetes {
namespace {

constexpr std::string_view kPortName = "tfjob-port";

Json OwnerOf(const TrainingJob& job) {
  return Json::array({{{"apiVersion", kTfJobs.group_version},
                       {"kind", "TFJob"},
                       {"name", job.spec.name},
                       {"uid", job.uid},
                       {"controller", true},
                       {"blockOwnerDeletion", true}}});
}

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

const Json* FindContainer(const Json& pod_template) {
  const Json& containers = Child(Child(pod_template, "spec"), "containers");
  if (!containers.is_array()) return nullptr;
  for (const Json& container : containers) {
    if (TextOf(container, "name") == kContainerName) return &container;
  }
  return containers.size() == 1 ? &containers[0] : nullptr;
}

// Of the type's template: the port named tfjob-port; 0: it has none.
int FindPort(const Json& pod_template) {
  const Json* const container = FindContainer(pod_template);
  if (container == nullptr) return 0;
  const Json& ports = Child(*container, "ports");
  if (!ports.is_array()) return 0;
  for (const Json& port : ports) {
    if (TextOf(port, "name") == kPortName) {
      return static_cast<int>(NumberOf(port, "containerPort"));
    }
  }
  return 0;
}

int GetPort(const job::JobSpec& spec, job::TaskType type) {
  const int port = FindPort(spec.replicas.at(type).pod_template);
  return port == 0 ? job::kDefaultPort : port;
}

job::Cluster GetCluster(const TrainingJob& job, const PodPlanOptions& options) {
  job::Cluster cluster;
  const std::string domain =
      options.cluster_domain.empty() ? "" : StrCat(".", options.cluster_domain);
  for (const auto& [type, replica] : job.spec.replicas) {
    for (int index = 0; index < replica.replicas; ++index) {
      cluster[{type, index}] =
          StrCat(GetObjectName(job.spec, {type, index}), ".", job.spec.name_space, ".svc", domain,
                 ":", GetPort(job.spec, type));
    }
  }
  return cluster;
}

std::string_view GetRestartPolicy(const job::JobSpec& spec, job::TaskType type) {
  if (!RestartsInPlace(spec, type)) return "Never";
  return job::RestartPolicyName(spec.replicas.at(type).restart_policy);
}

}  // namespace

std::string GetObjectName(const job::JobSpec& spec, job::TaskId task) {
  return StrCat(spec.name, "-", job::TaskName(task));
}

bool RestartsInPlace(const job::JobSpec& spec, job::TaskType type) {
  const job::RestartPolicy policy = spec.replicas.at(type).restart_policy;
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
  if (Json* const container = job::GetContainer(&pod_template);
      container != nullptr && !container->contains("terminationMessagePolicy")) {
    // So that the kubelet puts the last lines of a failed container into the pod's status.
    (*container)["terminationMessagePolicy"] = "FallbackToLogsOnError";
  }
  Json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}};
  Json& metadata = pod["metadata"];
  metadata["name"] = GetObjectName(job.spec, task);
  Json labels = Child(Child(pod_template, "metadata"), "labels");
  if (!labels.is_object()) labels = Json::object();
  labels.update(LabelsOf(job, task));
  if (IsMaster(job.spec, task)) labels[Key(kRoleLabel)] = "master";
  AddLegacyLabels(job, task, &labels);
  metadata["labels"] = std::move(labels);
  Json annotations = Child(Child(pod_template, "metadata"), "annotations");
  if (!annotations.is_object()) annotations = Json::object();
  annotations[Key(kIncarnationAnnotation)] = StrCat(incarnation);
  metadata["annotations"] = std::move(annotations);
  metadata["ownerReferences"] = OwnerOf(job);
  pod["spec"] = Child(pod_template, "spec");
  pod["spec"]["restartPolicy"] = GetRestartPolicy(job.spec, task.type);
  return pod;
}

Json MakeService(const TrainingJob& job, job::TaskId task) {
  const int port = GetPort(job.spec, task.type);
  Json service = {{"apiVersion", "v1"}, {"kind", "Service"}};
  service["metadata"]["name"] = GetObjectName(job.spec, task);
  service["metadata"]["labels"] = LabelsOf(job, task);
  AddLegacyLabels(job, task, &service["metadata"]["labels"]);
  service["metadata"]["ownerReferences"] = OwnerOf(job);
  Json& spec = service["spec"];
  spec["clusterIP"] = "None";
  spec["selector"] = LabelsOf(job, task);
  // A task's peers look for it before it is ready.
  spec["publishNotReadyAddresses"] = true;
  spec["ports"] = Json::array({{{"name", kPortName}, {"port", port}, {"targetPort", port}}});
  return service;
}

}  // namespace muster::launch::kubernetes
