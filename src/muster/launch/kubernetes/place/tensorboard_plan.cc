#include "muster/launch/kubernetes/place/tensorboard_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

#include "muster/io/path_scheme.h"
#include "muster/launch/kubernetes/place/job_description.h"
#include "muster/launch/kubernetes/place/training_template.h"
#include "muster/launch/kubernetes/pod_plan.h"
#include "muster/launch/kubernetes/training_job.h"

namespace muster::launch::kubernetes {
namespace {

constexpr int kPort = 6006;  // TensorBoard's own
// TensorBoard without the field "Content-Encoding: identity" of its first page. An API server takes
// that for a coding that it does not know, and breaks the page off.
constexpr char kProgram[] =
    "from http.server import BaseHTTPRequestHandler as Handler\n"
    "send = Handler.send_header\n"
    "Handler.send_header = lambda self, name, value: value == 'identity' or send(self, name, "
    "value)\n"
    "from tensorboard.main import run_main\n"
    "run_main()\n";
constexpr const char* kFolderFlags[] = {"--model-dir", "--model_dir", "--log_dir", "--logdir"};
constexpr const char* kPodFields[] = {"securityContext", "imagePullSecrets", "serviceAccountName",
                                      "nodeSelector", "tolerations"};

std::string FindFolder(const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    for (const std::string flag : kFolderFlags) {
      if (words[i].starts_with(flag + "=")) return words[i].substr(flag.size() + 1);
      if (words[i] == flag && i + 1 < words.size()) return words[i + 1];
    }
  }
  // muster worker SPEC MODEL_DIR
  const bool is_worker = words.size() >= 4 && words[0].ends_with("muster") &&
                         (words[1] == "worker" || words[1] == "train");
  return is_worker && !words[3].starts_with("-") ? words[3] : "";
}

// The pod templates of a job: that of its chief or master first.
std::vector<const Json*> GetTemplates(const job::JobSpec& spec) {
  std::vector<const Json*> templates;
  for (const auto& [type, replica] : spec.replicas) {
    const auto where = type == spec.leader() ? templates.begin() : templates.end();
    templates.insert(where, &replica.pod_template);
  }
  return templates;
}

struct MountedVolume {
  Json mount = {}, volume = {};
};

const Json* FindNamed(const Json& list, const std::string& name) {
  if (!list.is_array()) return nullptr;
  for (const Json& each : list) {
    if (GetText(each, "name") == name) return &each;
  }
  return nullptr;
}

// The mount of the template's container that the folder lies in: the innermost one.
std::optional<MountedVolume> FindMount(const Json& pod_template, const std::string& folder) {
  const Json* const container = FindContainer(pod_template);
  const Json* found = nullptr;
  const Json& mounts = container == nullptr ? Json() : Child(*container, "volumeMounts");
  if (!mounts.is_array()) return std::nullopt;
  for (const Json& mount : mounts) {
    const std::string path = GetText(mount, "mountPath");
    if (!IsBelow(folder, {path})) continue;
    if (found == nullptr || GetText(*found, "mountPath").size() < path.size()) found = &mount;
  }
  if (found == nullptr) return std::nullopt;
  const Json* const volume =
      FindNamed(Child(Child(pod_template, "spec"), "volumes"), GetText(*found, "name"));
  if (volume == nullptr) return std::nullopt;
  return MountedVolume{.mount = *found, .volume = *volume};
}

absl::Status ExplainNoVolume(const std::vector<const Json*>& templates, const std::string& name,
                             const std::string& folder) {
  std::vector<std::string> paths;
  for (const Json* const each : templates) {
    for (const std::string& path : GetMountPaths(*each)) {
      if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
    }
  }
  return absl::FailedPreconditionError(
      StrCat("the folder ", folder, " of the job ", name, " lies on none of its volumes (",
             paths.empty() ? "it has none" : "they are at ", absl::StrJoin(paths, ", "),
             "), so that another pod cannot read it: give a folder "
             "there with --model-dir"));
}

Json MakeDeployment(const std::string& name, const Json& labels, Json pod_spec) {
  Json deployment = {{"apiVersion", kDeployments.group_version}, {"kind", "Deployment"}};
  deployment["metadata"] = {{"name", name}, {"labels", labels}};
  deployment["spec"]["replicas"] = 1;
  // The old pod goes first: a volume may be one that a single node has.
  deployment["spec"]["strategy"] = {{"type", "Recreate"}};
  deployment["spec"]["selector"]["matchLabels"] = labels;
  deployment["spec"]["template"] = {{"metadata", {{"labels", labels}}},
                                    {"spec", std::move(pod_spec)}};
  return deployment;
}

Json MakeContainer(const TensorBoardOptions& options, const std::string& folder) {
  std::vector<std::string> words = {"python3", "-c",         kProgram, "--logdir",
                                    folder,    "--bind_all", "--port", StrCat(kPort)};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  Json command = Json::array();
  // $(NAME) of a text would be replaced by Kubernetes.
  for (const std::string& word : words) {
    command.push_back(absl::StrReplaceAll(word, {{"$", "$$"}}));
  }
  Json container = {{"name", "tensorboard"}, {"image", options.image}};
  container["command"] = std::move(command);
  container["terminationMessagePolicy"] = "FallbackToLogsOnError";  // for FindStartProblem()
  container["ports"] = Json::array({{{"name", "http"}, {"containerPort", kPort}}});
  container["readinessProbe"] = {{"tcpSocket", {{"port", "http"}}}, {"periodSeconds", 2}};
  container["resources"]["requests"] = {{"cpu", "100m"}, {"memory", "512Mi"}};
  return container;
}

// A pod like those of `pod_template` as far as security and nodes are concerned.
Json MakePodLike(const Json& pod_template, Json container) {
  Json pod = {{"automountServiceAccountToken", false}};
  for (const char* const field : kPodFields) {
    if (const Json& value = Child(Child(pod_template, "spec"), field); !value.is_null()) {
      pod[field] = value;
    }
  }
  if (const Json* const model = FindContainer(pod_template);
      model != nullptr && model->contains("securityContext")) {
    container["securityContext"] = Child(*model, "securityContext");
  }
  pod["containers"] = Json::array({std::move(container)});
  return pod;
}

absl::StatusOr<Json> MakePodSpec(const TrainingJob& job, const TensorBoardOptions& options,
                                 const std::string& folder) {
  const std::vector<const Json*> templates = GetTemplates(job.spec);
  const Json container = MakeContainer(options, folder);
  if (!io::PathScheme(folder).empty()) return MakePodLike(*templates.front(), container);
  for (const Json* const each : templates) {
    std::optional<MountedVolume> mounted = FindMount(*each, folder);
    if (!mounted) continue;
    if (mounted->volume.contains("emptyDir")) {
      return absl::FailedPreconditionError(
          StrCat("the folder ", folder, " of the job ", job.spec.name,
                 " lies on an emptyDir, which its own pod alone has: train onto a "
                 "PersistentVolumeClaim, or give another folder with --model-dir"));
    }
    Json pod = MakePodLike(*each, container);
    mounted->mount["readOnly"] = true;
    pod["containers"][0]["volumeMounts"] = Json::array({mounted->mount});
    pod["volumes"] = Json::array({mounted->volume});
    return pod;
  }
  return ExplainNoVolume(templates, job.spec.name, folder);
}

Json MakeTensorBoardService(const std::string& name, const Json& labels) {
  Json service = {{"apiVersion", "v1"}, {"kind", "Service"}};
  service["metadata"] = {{"name", name}, {"labels", labels}};
  service["spec"]["selector"] = labels;
  service["spec"]["ports"] =
      Json::array({{{"name", "http"}, {"port", 80}, {"targetPort", "http"}}});
  return service;
}

const Json* FindTrueCondition(const Json& object, std::string_view type) {
  const Json& conditions = Child(Child(object, "status"), "conditions");
  if (!conditions.is_array()) return nullptr;
  for (const Json& each : conditions) {
    if (GetText(each, "type") == type && GetText(each, "status") == "True") return &each;
  }
  return nullptr;
}

}  // namespace

std::string FindModelDir(const Json& object) {
  const auto job = ReadTrainingJob(object);
  if (!job.ok()) return "";
  if (!job->spec.model_dir.empty()) return job->spec.model_dir;
  for (const Json* const each : GetTemplates(job->spec)) {
    const Json* const container = FindContainer(*each);
    if (container == nullptr) continue;
    if (std::string folder = FindFolder(GetWords(*container)); !folder.empty()) return folder;
  }
  return "";
}

absl::StatusOr<TensorBoardPlan> PlanTensorBoard(const Json& object,
                                                const TensorBoardOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const TrainingJob job, ReadTrainingJob(object));
  const std::string& name = job.spec.name;
  TensorBoardPlan plan = {.name = StrCat(name, "-tensorboard-", options.id),
                          .id = options.id,
                          .model_dir = options.model_dir};
  if (plan.model_dir.empty()) plan.model_dir = FindModelDir(object);
  if (plan.model_dir.empty()) {
    return absl::FailedPreconditionError(
        StrCat("the job ", name,
               " names no model folder: give the pods' path with --model-dir, or "
               "in the TFJob as the annotation muster/modelDir"));
  }
  MUSTER_ASSIGN_OR_RETURN(Json pod, MakePodSpec(job, options, plan.model_dir));
  const Json labels = {{std::string(kTensorBoardLabel), name},
                       {std::string(kTensorBoardIdLabel), options.id}};
  plan.deployment = MakeDeployment(plan.name, labels, std::move(pod));
  plan.service = MakeTensorBoardService(plan.name, labels);
  // Without `controller`: the operator takes them for none of the job's tasks.
  const Json owners = Json::array({{{"apiVersion", kTfJobs.group_version},
                                    {"kind", "TFJob"},
                                    {"name", name},
                                    {"uid", job.uid}}});
  plan.deployment["metadata"]["ownerReferences"] = owners;
  plan.service["metadata"]["ownerReferences"] = owners;
  return plan;
}

std::string GetProxyTarget(std::string_view name_space, std::string_view service) {
  return GetTarget(kServices, name_space, StrCat("http:", service, ":http"), "proxy");
}

std::string FindStartProblem(const Json& deployment, const std::vector<Json>& pods) {
  for (const Json& pod : pods) {
    if (Child(Child(pod, "metadata"), "deletionTimestamp").is_string()) continue;
    const std::string problem = FindPodProblem(pod);
    if (problem.starts_with("CrashLoopBackOff")) {  // its log is no task's
      return StrCat(problem, " (name an image that has TensorBoard with --image)");
    }
    if (!problem.empty()) return AddAdvice(problem);
  }
  const Json* const failure = FindTrueCondition(deployment, "ReplicaFailure");
  return failure == nullptr ? "" : AddAdvice(GetText(*failure, "message"));
}

}  // namespace muster::launch::kubernetes
