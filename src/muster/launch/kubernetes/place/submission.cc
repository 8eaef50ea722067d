#include "muster/launch/kubernetes/place/submission.h"

#include <utility>

#include "absl/strings/str_join.h"

#include "muster/formats/yaml_json.h"
#include "muster/job/job_name.h"
#include "muster/job/manifest.h"
#include "muster/launch/kubernetes/place/template_check.h"
#include "muster/launch/kubernetes/training_job.h"

namespace muster::launch::kubernetes {
namespace {

using formats::YamlReader;

constexpr size_t kMaxFileBytes = size_t{1} << 20;  // as the API server's own limit

bool IsLegacy(const Json& job) { return Child(Child(job, "spec"), "replicaSpecs").is_array(); }

// The objects of a file: its documents, and the items of lists.
absl::StatusOr<std::vector<YamlReader>> ReadObjects(std::string_view text,
                                                    const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<YamlReader> documents,
                          YamlReader::ParseAll(text, name));
  std::vector<YamlReader> objects;
  for (const YamlReader& document : documents) {
    const bool is_list = document.IsMap() && document.String("kind") == "List";
    if (!is_list) {
      objects.push_back(document);
      continue;
    }
    for (const YamlReader& item : document.At("items").Items()) objects.push_back(item);
    MUSTER_RETURN_IF_ERROR(document.status());
  }
  return objects;
}

absl::Status CheckTemplatesOfFile(const YamlReader& job) {
  if (!job.At("spec").Has("tfReplicaSpecs")) return job.status();
  job.At("spec").At("tfReplicaSpecs").ForEach([](const std::string&, const YamlReader& replica) {
    const YamlReader pod_template = replica.At("template");
    const absl::Status checked = CheckTemplate(formats::YamlToJson(pod_template));
    if (!checked.ok()) pod_template.Fail(ToStd(checked.message()));
  });
  return job.status();
}

}  // namespace

absl::StatusOr<JobFile> ReadJobFile(std::string_view text, const std::string& name) {
  if (text.size() > kMaxFileBytes) {
    return absl::InvalidArgumentError(
        StrCat(name, ": ", text.size(), " bytes; an object has at most ", kMaxFileBytes));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<YamlReader> objects, ReadObjects(text, name));
  JobFile file;
  std::vector<std::string> others;
  for (const YamlReader& object : objects) {
    const std::string kind = object.IsMap() ? object.String("kind") : "";
    MUSTER_RETURN_IF_ERROR(object.status());
    if (kind != "TFJob") {
      others.push_back(kind.empty() ? "a document without a kind" : kind);
    } else if (file.places.job) {
      object.Fail("has more than one TFJob; give one in a file");
      return object.status();
    } else {
      file.places.job = object;
    }
  }
  if (!file.places.job) {
    return absl::InvalidArgumentError(StrCat(
        name, ": holds no TFJob, but ", others.empty() ? "nothing" : absl::StrJoin(others, ", ")));
  }
  MUSTER_RETURN_IF_ERROR(job::ParseManifest(text, name, kOwnAnnotations).status());
  MUSTER_RETURN_IF_ERROR(CheckTemplatesOfFile(*file.places.job));
  file.job = formats::YamlToJson(*file.places.job);
  MUSTER_RETURN_IF_ERROR(file.places.job->status());
  file.job["apiVersion"] = IsLegacy(file.job) ? "kubeflow.org/v1alpha1" : "kubeflow.org/v1";
  file.job.erase("status");
  const auto read = ReadTrainingJob(file.job);
  MUSTER_RETURN_IF_ERROR(Annotate(read.status(), name));
  file.notes = read->notes;
  if (!others.empty()) {
    file.notes.push_back(StrCat(name, ": beside the TFJob are ", absl::StrJoin(others, ", "),
                                ", which are not submitted: kubectl apply -f makes them"));
  }
  return file;
}

absl::Status CheckJobName(const JobFile& file) {
  const std::string name_space = GetNamespace(file.job);
  const bool has_namespace = name_space.empty() || job::CheckNamespace(name_space).ok();
  const absl::Status checked =
      has_namespace ? job::CheckClusterName(GetName(file.job)) : job::CheckNamespace(name_space);
  if (checked.ok() || !file.places.job) return checked;
  const YamlReader name = file.places.job->At("metadata").At(has_namespace ? "name" : "namespace");
  // The job was given another one.
  if (name.AsString() != (has_namespace ? GetName(file.job) : name_space)) return checked;
  name.Fail(ToStd(checked.message()));
  return file.places.job->status();
}

absl::StatusOr<Json> SubmitJob(const JobFile& file, Cluster& cluster) {
  Json job = file.job;
  const std::string name = GetName(job);
  const std::string named = GetNamespace(job);
  if (!named.empty() && named != cluster.name_space) {
    return absl::InvalidArgumentError(StrCat("the job ", name, " names the namespace ", named,
                                             ", and --namespace or the context ",
                                             cluster.name_space, ": give --namespace ", named));
  }
  job["metadata"]["namespace"] = cluster.name_space;
  MUSTER_RETURN_IF_ERROR(CheckTemplates(job, file.places, cluster));
  MUSTER_RETURN_IF_ERROR(CheckClaimsOf(job, file.places, cluster));
  const KubeKind kind = {IsLegacy(job) ? "kubeflow.org/v1alpha1" : kTfJobs.group_version,
                         kTfJobs.plural};
  auto made = cluster.client->Create(GetTarget(kind, cluster.name_space), job);
  if (made.ok()) return made;
  if (absl::IsAlreadyExists(made.status())) {
    return absl::AlreadyExistsError(
        StrCat("there is a job ", name, " in the namespace ", cluster.name_space, " of ",
               cluster.access().source,
               " already: choose another --name, or end and remove it (muster "
               "stop, muster rm)"));
  }
  const absl::Status located = LocateRefusal(made.status(), file.places);
  return located == made.status() ? AddAdvice(located, cluster) : located;
}

absl::Status CheckClaims(const std::vector<ClaimMount>& mounts, const ClusterFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(Cluster cluster, OpenCluster(flags));
  for (const ClaimMount& mount : mounts) {
    const auto claim = cluster.client->Get(GetTarget(kClaims, cluster.name_space, mount.claim));
    if (claim.ok() || absl::IsPermissionDenied(claim.status())) continue;
    const absl::Status advised = AddAdvice(claim.status(), cluster);
    if (!absl::IsNotFound(claim.status()) || advised != claim.status()) return advised;
    return absl::NotFoundError(
        StrCat("--volume ", mount.claim, ":", mount.path, ": there is no claim ", mount.claim,
               " in the namespace ", cluster.name_space,
               ": make it, or name another one (kubectl get persistentvolumeclaims -n ",
               cluster.name_space, ")"));
  }
  return absl::OkStatus();
}

}  // namespace muster::launch::kubernetes
