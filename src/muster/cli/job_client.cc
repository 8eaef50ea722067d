#include "muster/cli/job_client.h"

#include <poll.h>
#include <unistd.h>

#include <climits>

#include "muster/control/coordinator.h"
#include "muster/control/job_access.h"
#include "muster/control/status_json.h"
#include "muster/files/file_systems.h"
#include "muster/launch/local/job_removal.h"
#include "muster/launch/local/local_job.h"
#include "muster/net/http_client.h"
#include "muster/process/deadline.h"
#include "muster/process/descriptor.h"
#include "muster/process/network_namespace.h"
#include "muster/process/pidfd.h"

namespace muster::cli {
namespace {

using formats::Json;
using formats::JsonFields;

constexpr double kAskSeconds = 10;
constexpr double kPatienceSeconds = 20;  // longer than a supervisor's longest pause
constexpr int kAskAgainMillis = 50;

std::string Advice(const control::JobFolder& folder) {
  const std::string name = io::Basename(folder.path);
  return StrCat("muster resume ", name, " goes on with it, muster stop ", name, " closes it");
}

// Nothing of it runs any more: "lost", and so are the tasks that ran.
void SetLost(const control::JobFolder& folder, Json* job) {
  (*job)["lost"] = true;
  (*job)["coordinator"] = StrCat("ended: coordinator lost; ", Advice(folder));
  for (Json& task : (*job)["tasks"]) {
    const std::string phase = JsonFields(task, "task").Text("phase");
    if (phase == "starting" || phase == "running" || phase == "stopping") task["phase"] = "lost";
  }
}

// `silence`: why the coordinator did not answer.
absl::StatusOr<Json> DescribeJournal(const control::JobFolder& folder,
                                     const absl::Status& silence) {
  MUSTER_ASSIGN_OR_RETURN(const Json state, StateOf(folder));
  MUSTER_ASSIGN_OR_RETURN(const job::JobSpec spec, control::SpecOfState(state));
  JsonFields fields(state, folder.journal());
  MUSTER_ASSIGN_OR_RETURN(
      const job::JobStatus status,
      control::StatusFromJson(fields.Object("status"), folder.journal() + ": status"));
  Json job = control::DescribeJob(spec, status, state);
  if (!status.ended()) {
    if (control::LivingCoordinator(folder)) {
      job["coordinator"] = StrCat("its coordinator does not answer: ", ToStd(silence.message()));
    } else if (control::LivingSupervisor(folder)) {
      job["coordinator"] = "its coordinator is being started again";
    } else if (launch::local::AnyAgentLives(folder)) {
      job["coordinator"] = StrCat(
          "its coordinator does not run, and its tasks end within the "
          "lease: ",
          Advice(folder));
    } else {
      SetLost(folder, &job);
    }
  }
  return job;
}

// A job in a network of its own is spoken to from within that.
absl::Status EnterNetworkOf(const control::JobFolder& folder) {
  if (process::IsNetworkIsolated()) return absl::OkStatus();
  const auto coordinator = control::LivingCoordinator(folder);
  return coordinator ? process::JoinNetwork(*coordinator)
                     : absl::UnavailableError("its coordinator has just ended");
}

}  // namespace

absl::StatusOr<control::JobFolder> FindJob(const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(const std::string jobs, control::JobsFolder());
  return control::FindJobFolder(jobs, name);
}

absl::StatusOr<Json> AskCoordinator(const control::JobFolder& folder, const std::string& method,
                                    const std::string& path, const Json& body) {
  if (!control::LivingCoordinator(folder)) {
    return absl::FailedPreconditionError(StrCat("the job ", io::Basename(folder.path),
                                                " has no coordinator that runs: ", Advice(folder)));
  }
  MUSTER_ASSIGN_OR_RETURN(const Json state, StateOf(folder));
  JsonFields fields(state, folder.journal());
  JsonFields notes(fields.Object("notes"), "notes");
  if (notes.Text(launch::local::kIsolatedNote) == "yes") {
    MUSTER_RETURN_IF_ERROR(EnterNetworkOf(folder));
  }
  MUSTER_ASSIGN_OR_RETURN(net::HttpClientOptions options,
                          control::ClientOptions(folder, notes.Text("url")));
  MUSTER_ASSIGN_OR_RETURN(const auto client, net::HttpClient::Create(std::move(options)));
  MUSTER_ASSIGN_OR_RETURN(const net::Json answer,
                          client->Call(method, path, net::Json(body), kAskSeconds));
  return Json(answer);
}

absl::StatusOr<Json> StateOf(const control::JobFolder& folder) {
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(control::JournalState journal,
                          control::ReadJournal(*files, folder.journal()));
  return std::move(journal.state);
}

bool HasEnded(const Json& job) {
  const std::string phase = JsonFields(job, "job").Text("phase");
  return phase == "succeeded" || phase == "failed";
}

bool IsCaredFor(const control::JobFolder& folder) {
  return control::LivingCoordinator(folder) || control::LivingSupervisor(folder);
}

absl::StatusOr<Json> AskPatiently(const control::JobFolder& folder, const std::string& method,
                                  const std::string& path, const Json& body) {
  const auto deadline = process::Deadline::After(kPatienceSeconds);
  while (true) {
    auto answer = AskCoordinator(folder, method, path, body);
    const bool may_come = absl::IsUnavailable(answer.status()) ||
                          (absl::IsFailedPrecondition(answer.status()) && IsCaredFor(folder));
    if (!may_come || deadline.expired()) return answer;
    poll(nullptr, 0, kAskAgainMillis);  // nothing announces that it listens
  }
}

bool WaitForEnd(const control::JobFolder& folder, double seconds) {
  const auto deadline = process::Deadline::After(seconds);
  while (true) {
    auto pid = control::LivingCoordinator(folder);
    if (!pid) pid = control::LivingSupervisor(folder);
    if (!pid) return true;
    const process::Descriptor process(process::OpenPidfd(*pid));
    pollfd end{.fd = process.get(), .events = POLLIN, .revents = 0};
    // One that ended a moment ago, or has just begun and not said its pid.
    if (!process.valid()) poll(nullptr, 0, 1);
    if (process.valid() && poll(&end, 1, deadline.PollMillis()) < 0) return false;
    if (deadline.expired()) return false;
  }
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
