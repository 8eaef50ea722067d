#include "muster/cli/job_client.h"

#include <unistd.h>

#include <climits>

#include "muster/control/coordinator.h"
#include "muster/control/job_access.h"
#include "muster/control/status_json.h"
#include "muster/io/local_file_system.h"
#include "muster/net/http_client.h"

namespace muster::cli {
namespace {

using control::Fields;
using control::Json;

constexpr double kAskSeconds = 10;

absl::StatusOr<Json> StateOf(const control::JobFolder& folder) {
  const auto files = io::NewLocalFileSystem();
  MUSTER_ASSIGN_OR_RETURN(control::JournalState journal,
                          control::ReadJournal(*files, folder.journal()));
  return std::move(journal.state);
}

// `silence`: why the coordinator did not answer.
absl::StatusOr<Json> DescribeJournal(const control::JobFolder& folder,
                                     const absl::Status& silence) {
  MUSTER_ASSIGN_OR_RETURN(const Json state, StateOf(folder));
  MUSTER_ASSIGN_OR_RETURN(const job::JobSpec spec, control::SpecOfState(state));
  Fields fields(state, folder.journal());
  MUSTER_ASSIGN_OR_RETURN(
      const job::JobStatus status,
      control::StatusFromJson(fields.Object("status"), folder.journal() + ": status"));
  Json job = control::DescribeJob(spec, status, state);
  if (!status.ended()) {
    job["coordinator"] =
        control::LivingCoordinator(folder)
            ? StrCat("its coordinator does not answer: ", ToStd(silence.message()))
            : StrCat("its coordinator does not run: muster resume ", spec.name, " goes on with it");
  }
  return job;
}

}  // namespace

absl::StatusOr<control::JobFolder> FindJob(const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(const std::string jobs, control::JobsFolder());
  return control::FindJobFolder(jobs, name);
}

absl::StatusOr<Json> AskCoordinator(const control::JobFolder& folder, const std::string& method,
                                    const std::string& path, const Json& body) {
  if (!control::LivingCoordinator(folder)) {
    return absl::FailedPreconditionError(
        StrCat("the job ", io::Basename(folder.path), " has no coordinator that runs"));
  }
  MUSTER_ASSIGN_OR_RETURN(const Json state, StateOf(folder));
  Fields fields(state, folder.journal());
  Fields notes(fields.Object("notes"), "notes");
  MUSTER_ASSIGN_OR_RETURN(net::HttpClientOptions options,
                          control::ClientOptions(folder, notes.Text("url")));
  MUSTER_ASSIGN_OR_RETURN(const auto client, net::HttpClient::Create(std::move(options)));
  MUSTER_ASSIGN_OR_RETURN(const net::Json answer,
                          client->Call(method, path, net::Json(body), kAskSeconds));
  return Json(answer);
}

absl::StatusOr<Json> DescribeJobOf(const control::JobFolder& folder) {
  auto living = AskCoordinator(folder, "GET", "/v1/status", Json());
  return living.ok() ? living : DescribeJournal(folder, living.status());
}

std::string JobNameError(const std::string& name) {
  return std::string(ToStd(control::CheckJobName(name).message()));
}

absl::StatusOr<std::string> OwnProgram() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  if (size <= 0) return ErrnoStatus(errno, "cannot find the program that runs");
  return std::string(path, static_cast<size_t>(size));
}

}  // namespace muster::cli
