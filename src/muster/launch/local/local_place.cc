#include "muster/launch/local/local_place.h"

#include <poll.h>

#include <utility>

#include "muster/control/coordinator.h"
#include "muster/control/job_access.h"
#include "muster/control/status_json.h"
#include "muster/files/file_systems.h"
#include "muster/launch/local/job_removal.h"
#include "muster/net/http/client.h"
#include "muster/process/deadline.h"
#include "muster/process/network_namespace.h"
#include "muster/process/pidfd.h"

namespace muster::launch::local {
namespace {

using formats::Json;
using formats::JsonFields;

constexpr double kAskSeconds = 10;
constexpr int kAskAgainMillis = 50;
constexpr int kCloseMillis = 1000;  // signals and changes end a wait; this is for what they miss

std::string Advice(const control::JobFolder& folder) {
  const std::string name = io::Basename(folder.path);
  return StrCat("muster resume ", name, " continues with it, muster stop ", name, " closes it");
}

// Describes a job of which nothing runs any more: its phase is "lost", and so are the tasks that
// ran.
void SetLost(const control::JobFolder& folder, Json* job) {
  (*job)["lost"] = true;
  (*job)["coordinator"] = StrCat("ended: coordinator lost; ", Advice(folder));
  for (Json& task : (*job)["tasks"]) {
    const std::string phase = JsonFields(task, "task").Text("phase");
    if (phase == "starting" || phase == "running" || phase == "stopping") task["phase"] = "lost";
  }
}

// Of a job's description (control::DescribeJob).
bool HasEnded(const Json& job) {
  const std::string phase = JsonFields(job, "job").Text("phase");
  return phase == "succeeded" || phase == "failed";
}

absl::Status EndedError(const Json& job) {
  JsonFields fields(job, "job");
  const std::string name = fields.Text("name");
  return absl::FailedPreconditionError(
      StrCat("the job ", name, " has ended (", fields.Text("phase"),
             "): there is nothing to suspend or to resume; muster rm ", name, " removes it"));
}

}  // namespace

absl::StatusOr<Json> LocalPlace::State() const {
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(control::JournalState journal,
                          control::ReadJournal(*files, options_.folder.journal()));
  return std::move(journal.state);
}

// `silence` says why the coordinator did not answer.
absl::StatusOr<Json> LocalPlace::DescribeJournal(const absl::Status& silence) const {
  const control::JobFolder& folder = options_.folder;
  MUSTER_ASSIGN_OR_RETURN(const Json state, State());
  MUSTER_ASSIGN_OR_RETURN(const job::JobSpec spec, control::ParseJobSpec(state));
  JsonFields fields(state, folder.journal());
  MUSTER_ASSIGN_OR_RETURN(
      const job::JobStatus status,
      control::StatusFromJson(fields.Object("status"), folder.journal() + ": status"));
  Json job = control::DescribeJob(spec, status, state);
  if (status.ended()) return job;
  if (control::LivingCoordinator(folder)) {
    job["coordinator"] = StrCat("its coordinator does not answer: ", ToStd(silence.message()));
  } else if (control::LivingSupervisor(folder)) {
    job["coordinator"] = "its coordinator is being started again";
  } else if (AnyAgentLives(folder)) {
    job["coordinator"] = StrCat(
        "its coordinator does not run, and its tasks end within the lease: ", Advice(folder));
  } else {
    SetLost(folder, &job);
  }
  return job;
}

// A job in a separate network can be reached only from within that network.
absl::Status LocalPlace::EnterNetwork() const {
  if (process::IsNetworkIsolated()) return absl::OkStatus();
  const auto coordinator = control::LivingCoordinator(options_.folder);
  return coordinator ? process::JoinNetwork(*coordinator)
                     : absl::UnavailableError("its coordinator has just ended");
}

// Sends one request to the running coordinator. FAILED_PRECONDITION if there is none.
absl::StatusOr<Json> LocalPlace::Ask(const std::string& method, const std::string& path,
                                     const Json& body) {
  const control::JobFolder& folder = options_.folder;
  if (!control::LivingCoordinator(folder)) {
    return absl::FailedPreconditionError(StrCat("the job ", io::Basename(folder.path),
                                                " has no coordinator that runs: ", Advice(folder)));
  }
  MUSTER_ASSIGN_OR_RETURN(const Json state, State());
  JsonFields fields(state, folder.journal());
  JsonFields notes(fields.Object("notes"), "notes");
  if (notes.Text(kIsolatedNote) == "yes") MUSTER_RETURN_IF_ERROR(EnterNetwork());
  MUSTER_ASSIGN_OR_RETURN(net::HttpClientOptions options,
                          control::ClientOptions(folder, notes.Text("url")));
  MUSTER_ASSIGN_OR_RETURN(const auto client, net::HttpClient::Create(std::move(options)));
  MUSTER_ASSIGN_OR_RETURN(const net::Json answer,
                          client->Call(method, path, net::Json(body), kAskSeconds));
  return Json(answer);
}

// Sends a request that must arrive. While the coordinator is being started or restarted, the
// request is repeated until it answers, for some seconds at most.
absl::Status LocalPlace::AskPatiently(const std::string& path, const Json& body) {
  const auto deadline = process::Deadline::After(options_.patience_seconds);
  while (true) {
    const absl::Status asked = Ask("POST", path, body).status();
    const bool may_come =
        absl::IsUnavailable(asked) || (absl::IsFailedPrecondition(asked) && IsCaredFor());
    if (!may_come || deadline.expired() || options_.interrupted()) return asked;
    poll(nullptr, 0, kAskAgainMillis);  // nothing announces that it listens
  }
}

absl::StatusOr<Json> LocalPlace::Describe() {
  auto living = Ask("GET", "/v1/status", Json());
  return living.ok() ? living : DescribeJournal(living.status());
}

absl::Status LocalPlace::Close(const std::string& why) const {
  MUSTER_ASSIGN_OR_RETURN(const auto job,
                          options_.run ? options_.run(options_.folder, options_.program, why)
                                       : LocalJob::Run(options_.folder, options_.program, why));
  control::Service& service = job->service();
  while (!service.finished()) {
    pollfd change{.fd = service.change_fd(), .events = POLLIN, .revents = 0};
    poll(&change, 1, kCloseMillis);
    service.ClearChange();
    if (options_.interrupted()) return absl::CancelledError("it was not waited for its end");
  }
  job->Finish();
  return absl::OkStatus();
}

absl::Status LocalPlace::Stop(const std::string& why) {
  MUSTER_ASSIGN_OR_RETURN(const Json job, Describe());
  if (HasEnded(job)) return absl::OkStatus();
  if (!IsCaredFor()) {
    const absl::Status closed = Close(StrCat(why, " after its coordinator was lost"));
    if (!absl::IsAlreadyExists(closed)) return closed;  // else another process has begun to run it
  }
  const absl::Status asked = AskPatiently("/v1/stop", {{"why", why}});
  if (!absl::IsFailedPrecondition(asked)) return asked;
  // The coordinator has ended since then.
  MUSTER_ASSIGN_OR_RETURN(const Json after, Describe());
  return HasEnded(after) ? absl::OkStatus() : asked;
}

absl::Status LocalPlace::Suspend(bool suspended) {
  const absl::Status asked = AskPatiently("/v1/suspend", {{"suspend", suspended}});
  if (!absl::IsFailedPrecondition(asked)) return asked;
  MUSTER_ASSIGN_OR_RETURN(const Json job, Describe());
  return HasEnded(job) ? EndedError(job) : asked;
}

absl::Status LocalPlace::Resume() {
  const std::string name = io::Basename(options_.folder.path);
  const auto coordinator = control::LivingCoordinator(options_.folder);
  const auto supervisor = control::LivingSupervisor(options_.folder);
  MUSTER_ASSIGN_OR_RETURN(const Json job, Describe());
  if (HasEnded(job)) return EndedError(job);
  if (!coordinator && !supervisor) return options_.start(options_.folder);
  if (JsonFields(job, "job").Text("phase") == "suspended") return Suspend(false);
  return absl::FailedPreconditionError(
      coordinator ? StrCat("the job ", name, " runs: its coordinator is process ", *coordinator)
                  : StrCat("the job ", name, " runs: process ", *supervisor,
                           " is starting its coordinator again"));
}

absl::StatusOr<std::string> LocalPlace::Remove(bool with_work) {
  return RemoveJob(options_.folder, with_work);
}

absl::StatusOr<std::unique_ptr<control::LogSource>> LocalPlace::OpenLog(job::TaskId task) {
  const control::JobFolder& folder = options_.folder;
  if (!spec_) {
    MUSTER_ASSIGN_OR_RETURN(const Json state, State());
    MUSTER_ASSIGN_OR_RETURN(spec_, control::ParseJobSpec(state));
  }
  if (task.index < 0 || task.index >= spec_->count(task.type)) {
    return absl::NotFoundError(
        StrCat("the job ", io::Basename(folder.path), " has no task ", job::TaskName(task)));
  }
  if (notice_ == nullptr) {
    notice_ = std::make_shared<control::FolderNotice>(io::Dirname(folder.task_log(task)));
  }
  return std::make_unique<control::LocalLogSource>(folder.task_log(task), notice_);
}

bool LocalPlace::IsCaredFor() const {
  return control::LivingCoordinator(options_.folder) || control::LivingSupervisor(options_.folder);
}

bool LocalPlace::WaitForEnd(double seconds) {
  const auto deadline = process::Deadline::After(seconds);
  while (true) {
    auto pid = control::LivingCoordinator(options_.folder);
    if (!pid) pid = control::LivingSupervisor(options_.folder);
    if (!pid) return true;
    const process::Descriptor process(process::OpenPidfd(*pid));
    pollfd end{.fd = process.get(), .events = POLLIN, .revents = 0};
    // The coordinator ended a moment ago, or has just begun and not written its pid yet.
    if (!process.valid()) poll(nullptr, 0, 1);
    if (process.valid() && poll(&end, 1, deadline.PollMillis()) < 0) return false;
    if (deadline.expired()) return false;
  }
}

}  // namespace muster::launch::local
