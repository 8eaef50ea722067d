#include "muster/cli/jobs/where_flags.h"

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/str_split.h"

#include "CLI/CLI.hpp"
#include "muster/cli/common/help.h"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/run_here.h"
#include "muster/cli/jobs/yarn_flags.h"
#include "muster/files/file_systems.h"
#include "muster/launch/kubernetes/place/kubernetes_place.h"

namespace muster::cli {
namespace {

using launch::kubernetes::Cluster;
using launch::kubernetes::KubernetesPlace;

constexpr const char* kFlags[] = {"--on", "--namespace", "--context", "--kubeconfig"};

// An absolute path, since the next verb may be called in another folder. A link stays one: files
// that a kubeconfig names are looked for in the folder of the link.
absl::StatusOr<std::string> MakeAbsolute(const std::string& path) {
  if (path.empty() || path.front() == '/') return path;
  std::error_code error;
  std::string absolute = std::filesystem::absolute(path, error);
  if (!error) return absolute;
  return absl::FailedPreconditionError(StrCat("find ", path, ": ", error.message()));
}

// With uid "" for a job that is about to be made: it is found by its name.
absl::Status Record(const control::JobFolder& folder, const std::string& name,
                    const std::string& uid, const Cluster& cluster, const WhereFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(std::string config, MakeAbsolute(flags.cluster.kubeconfig));
  return control::WritePlaceRecord(folder, {.kind = kKubernetesKind,
                                            .id = StrCat(cluster.name_space, "/", name, "/", uid),
                                            .url = cluster.access().server,
                                            .config = std::move(config),
                                            .context = flags.cluster.context});
}

}  // namespace

void AddWhereFlags(CLI::App& verb, WhereFlags* flags) {
  auto* const on = verb.add_option("--on", flags->on,
                                   "Where the job runs: kubernetes, in a cluster "
                                   "(docs/kubernetes.md), or yarn (docs/yarn.md)")
                       ->check(CLI::IsMember({kKubernetesKind, kYarnKind}));
  verb.add_option("--namespace", flags->cluster.name_space,
                  "The cluster's namespace (default: the context's, else default)")
      ->needs(on)
      ->check(NamespaceError)
      ->type_name("NS");
  verb.add_option("--context", flags->cluster.context,
                  "A context of the kubeconfig (default: its current-context)")
      ->needs(on)
      ->type_name("NAME");
  verb.add_option("--kubeconfig", flags->cluster.kubeconfig,
                  "How the cluster is reached (default: KUBECONFIG, a pod's service account, "
                  "~/.kube/config)")
      ->needs(on)
      ->type_name("FILE");
  Group(verb, kCluster, {"--on", "--namespace", "--context", "--kubeconfig"});
}

std::vector<std::string> GetWhereFlagNames() { return {std::begin(kFlags), std::end(kFlags)}; }

absl::Status FreeName(const std::string& name) {
  const auto folder = FindJob(name);
  if (!folder.ok()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const bool is_local, IsLocal(*folder));
  if (is_local) {
    if (!control::LivingCoordinator(*folder) && !control::LivingSupervisor(*folder)) {
      return absl::OkStatus();  // it moves aside
    }
    return absl::AlreadyExistsError(StrCat("a job ", name,
                                           " runs on this machine: choose another "
                                           "--name, or end it with muster stop ",
                                           name));
  }
  MUSTER_ASSIGN_OR_RETURN(const auto place, OpenJobIn(*folder));
  const auto job = place->Describe();
  if (absl::IsNotFound(job.status())) return ForgetIfGone(name);
  if (!job.ok()) return Annotate(job.status(), StrCat("an earlier job ", name));
  return absl::AlreadyExistsError(
      StrCat("a job ", name,
             " was submitted before, and is still there: choose another --name, or "
             "remove it with muster rm ",
             name));
}

OpenedPlace OpenElsewhere(const WhereFlags& flags, const std::string& name) {
  if (flags.is_yarn()) return OpenOnYarn(name);
  MUSTER_ASSIGN_OR_RETURN(Cluster cluster, launch::kubernetes::OpenCluster(flags.cluster));
  return std::make_unique<KubernetesPlace>(std::move(cluster), name);
}

std::optional<ClusterId> ReadClusterId(const control::PlaceRecord& record) {
  const std::vector<std::string> parts = absl::StrSplit(record.id, '/');
  if (record.kind != kKubernetesKind || parts.size() != 3) return std::nullopt;
  return ClusterId{.name_space = parts[0], .name = parts[1], .uid = parts[2]};
}

namespace {

absl::StatusOr<ClusterJob> ReadClusterJob(const control::JobFolder& folder,
                                          const control::PlaceRecord& record) {
  const auto id = ReadClusterId(record);
  if (!id) {
    return absl::InvalidArgumentError(
        StrCat(folder.place(), ": id is '", record.id, "', not namespace/name/uid"));
  }
  auto cluster = launch::kubernetes::OpenCluster(
      {.kubeconfig = record.config, .context = record.context, .name_space = id->name_space});
  const std::string advice = StrCat("the job ", id->name, " runs in the cluster at ", record.url,
                                    ": muster VERB ", id->name,
                                    " --on kubernetes with --kubeconfig "
                                    "or --context finds it");
  if (!cluster.ok()) return Annotate(cluster.status(), advice);
  if (cluster->access().server != record.url) {
    return absl::FailedPreconditionError(
        StrCat(cluster->access().source, " leads to ", cluster->access().server, " now; ", advice));
  }
  return ClusterJob{.cluster = *std::move(cluster), .name = id->name, .uid = id->uid};
}

}  // namespace

OpenedPlace OpenKubernetes(const control::JobFolder& folder, const control::PlaceRecord& record) {
  MUSTER_ASSIGN_OR_RETURN(ClusterJob job, ReadClusterJob(folder, record));
  return std::make_unique<KubernetesPlace>(std::move(job.cluster), job.name, job.uid);
}

absl::StatusOr<std::optional<ClusterJob>> FindClusterJob(const std::string& name,
                                                         const WhereFlags& flags) {
  if (flags.is_yarn()) return std::nullopt;
  if (flags.is_elsewhere()) {
    MUSTER_ASSIGN_OR_RETURN(Cluster cluster, launch::kubernetes::OpenCluster(flags.cluster));
    return ClusterJob{.cluster = std::move(cluster), .name = name};
  }
  const auto folder = FindJob(name);
  if (!folder.ok()) return std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(const auto record, control::ReadPlaceRecord(*folder));
  if (record.kind != kKubernetesKind) return std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(ClusterJob job, ReadClusterJob(*folder, record));
  return job;
}

absl::StatusOr<std::vector<formats::Json>> DescribeElsewhere(const WhereFlags& flags) {
  if (flags.is_yarn()) return DescribeAllOnYarn();
  MUSTER_ASSIGN_OR_RETURN(Cluster cluster, launch::kubernetes::OpenCluster(flags.cluster));
  return launch::kubernetes::DescribeJobs(cluster);
}

absl::StatusOr<std::vector<formats::Json>> DescribeRecorded(const std::vector<RecordedJob>& jobs) {
  std::map<std::string, std::string> uids;
  for (const RecordedJob& job : jobs) {
    if (const auto id = ReadClusterId(job.record)) uids[id->name] = id->uid;
  }
  if (uids.empty()) return std::vector<formats::Json>();
  MUSTER_ASSIGN_OR_RETURN(ClusterJob first,
                          ReadClusterJob(jobs.front().folder, jobs.front().record));
  return launch::kubernetes::DescribeJobs(first.cluster, uids);
}

absl::Status ForgetIfGone(const std::string& name) {
  const auto folder = FindJob(name);
  if (!folder.ok()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const bool is_local, IsLocal(*folder));
  if (is_local) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const auto place, OpenJobIn(*folder));
  if (!absl::IsNotFound(place->Describe().status())) return absl::OkStatus();
  return files::OpenFileSystems()->RemoveAll(folder->path);
}

absl::Status SubmitToCluster(const launch::kubernetes::JobFile& file, const WhereFlags& flags) {
  const formats::Json& job = file.job;
  MUSTER_RETURN_IF_ERROR(launch::kubernetes::CheckJobName(file));
  WhereFlags where = flags;
  if (where.cluster.name_space.empty()) {
    where.cluster.name_space = launch::kubernetes::GetNamespace(job);
  }
  MUSTER_ASSIGN_OR_RETURN(Cluster cluster, launch::kubernetes::OpenCluster(where.cluster));
  const std::string name = launch::kubernetes::GetName(job);
  MUSTER_RETURN_IF_ERROR(FreeName(name));
  // A Ctrl-C, or even kill -9, while the server answers must not leave a job that nobody has the
  // name of.
  const InterruptScope interrupt;
  MUSTER_ASSIGN_OR_RETURN(const std::string jobs, control::JobsFolder());
  MUSTER_ASSIGN_OR_RETURN(const auto folder, control::MakeJobFolder(jobs, name));
  MUSTER_RETURN_IF_ERROR(Record(folder, name, "", cluster, where));
  const auto made = launch::kubernetes::SubmitJob(file, cluster);
  if (!made.ok()) {
    // Unless the server may have made it and only its answer is lost.
    if (!absl::IsUnavailable(made.status()) && !absl::IsDeadlineExceeded(made.status())) {
      files::OpenFileSystems()->RemoveAll(folder.path).IgnoreError();
    }
    return made.status();
  }
  MUSTER_RETURN_IF_ERROR(Record(folder, name, launch::kubernetes::GetUid(*made), cluster, where));
  SayOfJob(StrCat("job ", name, " in the namespace ", cluster.name_space, " of ",
                  cluster.access().server));
  if (!InterruptScope::requested()) return absl::OkStatus();
  return absl::CancelledError(StrCat("the job ", name, " was made before ",
                                     InterruptScope::StoppedBy(), ": muster logs -f ", name,
                                     " shows it, muster stop ", name, " ends it"));
}

}  // namespace muster::cli
