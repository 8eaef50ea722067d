#include "muster/cli/jobs/job_client.h"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"

#include "muster/cli/common/interrupt.h"
#include "muster/cli/jobs/start_coordinator.h"
#include "muster/cli/jobs/yarn_flags.h"
#include "muster/io/file_system.h"
#include "muster/job/job_name.h"
#include "muster/launch/local/local_place.h"
#include "muster/launch/ssh/hosts_job.h"

namespace muster::cli {
namespace {

using Opened = absl::StatusOr<std::unique_ptr<control::JobPlace>>;

Opened OpenLocal(const control::JobFolder& folder, const control::PlaceRecord&) {
  MUSTER_ASSIGN_OR_RETURN(const std::string program, OwnProgram());
  return std::make_unique<launch::local::LocalPlace>(launch::local::LocalPlaceOptions{
      .folder = folder,
      .program = program,
      .run = launch::ssh::RunJob,
      .start = StartSupervised,
      .interrupted = [] { return InterruptScope::requested().load(); }});
}

// A kind of place and how a job there is opened.
struct Kind {
  const char* name;
  Opened (*open)(const control::JobFolder&, const control::PlaceRecord&);
};
constexpr Kind kKinds[] = {
    {control::kLocalKind, OpenLocal}, {kKubernetesKind, OpenKubernetes}, {kYarnKind, OpenYarn}};

// What leads from this machine to a cluster, for people; "" for nothing.
std::string FindKubeConfig() {
  const auto places = launch::kubernetes::GetKubeConfigPlaces();
  if (const std::string& named = places.environment_kubeconfig; !named.empty()) return named;
  if (!places.service_host.empty()) return "this pod";
  const std::string path = places.home + "/.kube/config";
  return access(path.c_str(), R_OK) == 0 ? path : "";
}

}  // namespace

absl::StatusOr<control::JobFolder> FindJob(const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(const std::string jobs, control::JobsFolder());
  return control::FindJobFolder(jobs, name);
}

absl::StatusOr<std::unique_ptr<control::JobPlace>> OpenJobIn(const control::JobFolder& folder) {
  MUSTER_ASSIGN_OR_RETURN(const auto record, control::ReadPlaceRecord(folder));
  std::vector<std::string> known;
  for (const Kind& kind : kKinds) {
    if (record.kind == kind.name) return kind.open(folder, record);
    known.emplace_back(kind.name);
  }
  return absl::FailedPreconditionError(
      StrCat("the job ", io::Basename(folder.path), " runs in a place of kind '", record.kind,
             "', which this muster does not know (known: ", absl::StrJoin(known, ", "),
             "): use the muster that submitted it"));
}

absl::StatusOr<std::unique_ptr<control::JobPlace>> OpenJob(const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(const auto folder, FindJob(name));
  return OpenJobIn(folder);
}

absl::StatusOr<std::unique_ptr<control::JobPlace>> OpenJob(const std::string& name,
                                                           const WhereFlags& where) {
  if (where.is_elsewhere()) return OpenElsewhere(where, name);
  const absl::Status found = FindJob(name).status();
  const std::string config = absl::IsNotFound(found) ? FindKubeConfig() : "";
  if (config.empty()) return OpenJob(name);
  return absl::NotFoundError(
      StrCat(ToStd(found.message()), "; --on kubernetes looks for it in the cluster of ", config));
}

absl::StatusOr<bool> IsLocal(const control::JobFolder& folder) {
  MUSTER_ASSIGN_OR_RETURN(const auto record, control::ReadPlaceRecord(folder));
  return record.kind == control::kLocalKind;
}

bool HasEnded(const formats::Json& job) {
  const std::string phase = formats::JsonFields(job, "job").Text("phase");
  return phase == "succeeded" || phase == "failed";
}

std::string JobNameError(const std::string& name) {
  return std::string(ToStd(control::CheckJobName(name).message()));
}

std::string NewJobNameError(const std::string& name) {
  return std::string(ToStd(job::CheckName(name).message()));
}

std::string NamespaceError(const std::string& name) {
  return std::string(ToStd(job::CheckNamespace(name).message()));
}

absl::StatusOr<std::string> OwnProgram() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  if (size <= 0) return ErrnoStatus(errno, "cannot find the program that runs");
  return std::string(path, static_cast<size_t>(size));
}

}  // namespace muster::cli
