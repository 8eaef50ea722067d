#include "muster/launch/yarn/yarn_place.h"

#include <poll.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"

#include "muster/control/coordinator.h"
#include "muster/control/job_access.h"
#include "muster/control/journal.h"
#include "muster/control/status_json.h"
#include "muster/files/file_systems.h"
#include "muster/launch/slots/shared_state.h"
#include "muster/process/deadline.h"

namespace muster::launch::yarn {
namespace {

using formats::JsonFields;

constexpr double kAskSeconds = 5;
constexpr auto kDescribedAge = std::chrono::seconds(1);
constexpr auto kContainersPatience = std::chrono::seconds(10);
constexpr uint64_t kMaxUrlBytes = 4096;
constexpr double kRemoveSeconds = 20;
constexpr int kJournalTries = 5;
constexpr int kEndLookMillis = 500;
constexpr std::string_view kFailed = "failed ";  // before an ApplicationMaster's own last words

bool IsOver(const Json& job) {
  const std::string phase = JsonFields(job, "job").Text("phase");
  return phase == "succeeded" || phase == "failed";
}

// Where a browser finds the application's own page.
std::string GetPageUrl(const control::PlaceRecord& record, const YarnConfig& config) {
  return StrCat(config.proxy.empty() ? record.url : config.proxy, "/proxy/", record.id, "/");
}

std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return std::string(absl::StripAsciiWhitespace(text));
}

// A journal has no tasks before its first coordinator has begun; a job may wait in a queue for
// long.
void AddPendingTasks(const job::JobSpec& spec, Json* job) {
  for (const auto& [type, replica] : spec.replicas) {
    for (int i = 0; i < replica.replicas; ++i) {
      (*job)["tasks"].push_back({{"task", job::TaskName({type, i})},
                                 {"phase", std::string(job::PhaseName(job::TaskPhase::kWaiting))},
                                 {"incarnation", 0},
                                 {"restarts", 0}});
    }
  }
}

// The application has ended before its job: somebody killed it, or its ApplicationMaster failed
// too often. Nothing of it runs any more.
void SetEnded(const Application& app, Json* job) {
  (*job)["phase"] = "failed";
  const std::string why = OneLine(app.diagnostics);
  (*job)["message"] = StrCat("the application ", app.id, " was ended by YARN (", app.state,
                             why.empty() ? "" : ": ", why, ")");
  (*job)["completion_time"] = app.finished_seconds;
  for (Json& task : (*job)["tasks"]) {
    const std::string phase = JsonFields(task, "task").Text("phase");
    if (phase == "starting" || phase == "running" || phase == "stopping") task["phase"] = "lost";
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<YarnPlace>> YarnPlace::Open(const control::JobFolder& folder,
                                                           const control::PlaceRecord& record,
                                                           const YarnConfig& config) {
  MUSTER_ASSIGN_OR_RETURN(auto client, YarnClient::New(config));
  return std::unique_ptr<YarnPlace>(
      new YarnPlace(folder, record, GetPageUrl(record, config),
                    {.folder = config.log_folder, .suffix = config.log_suffix, .user = config.user},
                    files::OpenFileSystems(), std::move(client)));
}

// UNAVAILABLE if none has told where it is.
absl::Status YarnPlace::FindCoordinator() {
  const auto text = io::ReadFile(*files_, StrCat(record_.staging, "/coordinator"), kMaxUrlBytes);
  if (absl::IsNotFound(text.status())) {
    return absl::UnavailableError("its coordinator has not started yet");
  }
  MUSTER_RETURN_IF_ERROR(text.status());
  std::string url(absl::StripAsciiWhitespace(*text));
  if (url == url_ && coordinator_ != nullptr) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(auto options, control::ClientOptions(folder_, url));
  MUSTER_ASSIGN_OR_RETURN(coordinator_, net::HttpClient::Create(std::move(options)));
  url_ = std::move(url);
  return absl::OkStatus();
}

absl::StatusOr<Json> YarnPlace::Ask(const std::string& method, const std::string& path,
                                    const Json& body) {
  if (coordinator_ != nullptr) {
    auto answer = coordinator_->Call(method, path, net::Json(body), kAskSeconds);
    if (answer.ok()) return Json(*std::move(answer));
  }
  // It may have moved.
  MUSTER_RETURN_IF_ERROR(FindCoordinator());
  auto answer = coordinator_->Call(method, path, net::Json(body), kAskSeconds);
  MUSTER_RETURN_IF_ERROR(answer.status());
  return Json(*std::move(answer));
}

absl::StatusOr<Json> YarnPlace::DescribeJournal() {
  std::string path;
  absl::StatusOr<control::JournalState> read = absl::NotFoundError("");
  // Another coordinator may rename it between the two calls.
  for (int i = 0; i < kJournalTries && absl::IsNotFound(read.status()); ++i) {
    MUSTER_ASSIGN_OR_RETURN(path,
                            slots::FindSharedJournal(*files_, StrCat(record_.staging, "/state")));
    read = control::ReadJournal(*files_, path);
  }
  MUSTER_RETURN_IF_ERROR(read.status());
  const control::JournalState& journal = *read;
  MUSTER_ASSIGN_OR_RETURN(const job::JobSpec spec, control::ParseJobSpec(journal.state));
  JsonFields fields(journal.state, path);
  MUSTER_ASSIGN_OR_RETURN(const job::JobStatus status,
                          control::StatusFromJson(fields.Object("status"), path + ": status"));
  Json job = control::DescribeJob(spec, status, journal.state);
  if (job["tasks"].empty()) AddPendingTasks(spec, &job);
  const std::chrono::duration<double> wall = std::chrono::system_clock::now().time_since_epoch();
  if (status.last_wall > 0) job["age"] = std::max(0.0, wall.count() - status.last_wall);
  return job;
}

absl::StatusOr<Json> YarnPlace::DescribeWithout(const absl::Status& silence) {
  MUSTER_ASSIGN_OR_RETURN(Json job, DescribeJournal());
  if (IsOver(job)) return job;
  const auto app = client_->Get(record_.id);
  if (absl::IsNotFound(app.status())) {
    SetEnded({.id = record_.id, .state = "the ResourceManager does not know it any more"}, &job);
    return job;
  }
  MUSTER_RETURN_IF_ERROR(app.status());
  if (app->has_ended()) {
    // It may have written its last words since then.
    MUSTER_ASSIGN_OR_RETURN(job, DescribeJournal());
    if (!IsOver(job)) SetEnded(*app, &job);
    return job;
  }
  if (app->state != "RUNNING") {
    job["coordinator"] = DescribeWaiting(*app);
  } else {
    job["coordinator"] = StrCat("its coordinator does not answer: ", ToStd(silence.message()));
  }
  return job;
}

// Only the user who submitted a job may read its staging folder.
absl::Status YarnPlace::ExplainDenied() {
  const auto app = client_->Get(record_.id);
  const std::string owner = app.ok() && app->user != logs_.user ? app->user : "another user";
  return absl::PermissionDeniedError(
      StrCat("the job of ", record_.id, " is that of ", owner, ", and ", logs_.user,
             " may not read its files in ", record_.staging, ": ask as ", owner,
             " (HADOOP_USER_NAME, or kinit where Hadoop has Kerberos), or look at ", page_));
}

absl::StatusOr<Json> YarnPlace::Describe() {
  auto job = Ask("GET", "/v1/status", Json());
  if (!job.ok()) job = DescribeWithout(job.status());
  if (absl::IsPermissionDenied(job.status())) return ExplainDenied();
  if (!job.ok()) return Annotate(job.status(), StrCat("the job of ", record_.id));
  ExplainLacking(&*job);
  (*job)["application"] = record_.id;
  (*job)["page"] = page_;
  for (const Json& task : (*job)["tasks"]) RememberContainer(task);
  described_ = *job;
  described_at_ = std::chrono::steady_clock::now();
  return job;
}

// Where a task's incarnation runs is told while it runs, by the coordinator alone.
void YarnPlace::RememberContainer(const Json& described) {
  JsonFields task(described, "task");
  const std::string name = task.Text("task");
  const int64_t incarnation = task.Int("incarnation", 0, 0, INT64_MAX);
  if (auto found = ParseContainer(task.Text("place"))) {
    found->incarnation = incarnation;
    containers_[name] = *std::move(found);
  } else if (const auto last = containers_.find(name);
             last != containers_.end() && last->second.incarnation != incarnation) {
    containers_.erase(last);
  }
}

// A job whose tasks have had no container for some time is told what YARN says.
void YarnPlace::ExplainLacking(Json* job) {
  const auto lacks = [](const Json& each) {
    JsonFields task(each, "task");
    return task.Text("phase") == "starting" && task.Text("address").empty();
  };
  const auto now = std::chrono::steady_clock::now();
  JsonFields fields(*job, "job");
  if (fields.Text("phase") != "active" || std::ranges::none_of(fields.List("tasks"), lacks)) {
    lacking_since_.reset();
    return;
  }
  // A command that looks once takes them for lacking since the job has begun.
  const double born = fields.Number("start_time", 0);
  const std::chrono::duration<double> wall = std::chrono::system_clock::now().time_since_epoch();
  const std::chrono::duration<double> age(described_.is_null() && born > 0 ? wall.count() - born
                                                                           : 0);
  if (!lacking_since_) {
    lacking_since_ = now - std::chrono::duration_cast<std::chrono::steady_clock::duration>(age);
  }
  if (now - *lacking_since_ < kContainersPatience) return;
  const auto app = client_->Get(record_.id);
  if (!app.ok()) return;
  const std::string wanted = DescribeWanted(*app);
  if (!wanted.empty()) (*job)["coordinator"] = wanted;
}

absl::StatusOr<std::optional<ContainerInfo>> YarnPlace::FindContainer(const std::string& task) {
  if (std::chrono::steady_clock::now() > described_at_ + kDescribedAge) {
    MUSTER_RETURN_IF_ERROR(Describe().status());
  }
  const auto found = containers_.find(task);
  return found == containers_.end() ? std::nullopt : std::optional(found->second);
}

absl::StatusOr<std::vector<KeptOutput>> YarnPlace::ReadKept(const std::string& task) {
  return ReadAggregatedLog(*files_, logs_, record_.id, task);
}

bool YarnPlace::IsAggregating() {
  const auto app = client_->Get(record_.id);
  return app.ok() ? app->aggregates_logs() : absl::IsUnavailable(app.status());
}

bool YarnPlace::HasEnded() const { return IsOver(described_); }

absl::Status YarnPlace::Stop(const std::string& why) {
  MUSTER_ASSIGN_OR_RETURN(const Json job, Describe());
  if (IsOver(job)) return absl::OkStatus();
  const absl::Status asked = Ask("POST", "/v1/stop", {{"why", why}}).status();
  if (asked.ok()) return asked;
  const absl::Status killed = client_->Kill(record_.id);
  return Annotate(killed, StrCat("its coordinator does not answer (", ToStd(asked.message()),
                                 "), and the application ", record_.id, " cannot be killed"));
}

absl::Status YarnPlace::Suspend(bool suspended) {
  MUSTER_ASSIGN_OR_RETURN(const Json job, Describe());
  if (IsOver(job)) {
    return absl::FailedPreconditionError(StrCat("the job has ended (",
                                                JsonFields(job, "job").Text("phase"),
                                                "): there is nothing to suspend or to resume"));
  }
  return Ask("POST", "/v1/suspend", {{"suspend", suspended}}).status();
}

absl::Status YarnPlace::Resume() {
  MUSTER_ASSIGN_OR_RETURN(const Json job, Describe());
  if (!IsOver(job) && JsonFields(job, "job").Text("phase") != "suspended") {
    return absl::FailedPreconditionError("the job is not suspended");
  }
  return Suspend(false);
}

absl::StatusOr<std::string> YarnPlace::Remove(bool) {
  const auto job = Describe();
  // The application ends a moment after its job.
  if (job.ok() && IsOver(*job)) (void)WaitForEnd(kRemoveSeconds);
  const auto app = client_->Get(record_.id);
  if (!app.ok() && !absl::IsNotFound(app.status())) return app.status();
  if (app.ok() && !app->has_ended()) {
    return absl::FailedPreconditionError(
        StrCat("the application ", record_.id, " has not ended: muster stop ends it"));
  }
  MUSTER_RETURN_IF_ERROR(files_->RemoveAll(record_.staging));
  return std::string();
}

absl::StatusOr<std::unique_ptr<control::LogSource>> YarnPlace::OpenLog(job::TaskId task) {
  MUSTER_ASSIGN_OR_RETURN(const Json job, Describe());
  JsonFields fields(job, "job");
  const std::string name = job::TaskName(task);
  const Json& tasks = fields.List("tasks");
  const bool is_known = std::any_of(tasks.begin(), tasks.end(), [&](const Json& each) {
    return JsonFields(each, "task").Text("task") == name;
  });
  if (!is_known) return absl::NotFoundError(StrCat("the job has no task ", name));
  return std::make_unique<ContainerLog>(name, static_cast<ContainerLookup&>(*this));
}

bool YarnPlace::WaitForEnd(double seconds) {
  const auto deadline = process::Deadline::After(seconds);
  while (true) {
    const auto app = client_->Get(record_.id);
    if (absl::IsNotFound(app.status()) || (app.ok() && app->has_ended())) return true;
    if (deadline.expired()) return false;
    const int wait = std::min(deadline.PollMillis(), kEndLookMillis);
    if (poll(nullptr, 0, std::max(wait, 1)) < 0) return false;  // a signal
  }
}

std::string DescribeWaiting(const Application& app) {
  std::string why = OneLine(app.diagnostics);
  for (const char* const sign :
       {"Scheduler has assigned a container", "AM container is launched"}) {
    if (why.find(sign) != why.npos) return "YARN starts its ApplicationMaster";
  }
  if (why.starts_with('[')) why.erase(0, why.find(']') + 1);  // the time
  why = OneLine(why.substr(0, why.find(" Details :")));       // numbers of the queue, which change
  return StrCat("it waits in YARN's queue ", app.queue, why.empty() ? "" : ": ", why);
}

std::string DescribeWanted(const Application& app) {
  std::vector<std::string> sizes;
  for (const WantedContainers& wanted : app.wanted) {
    sizes.push_back(StrCat(wanted.count, wanted.count == 1 ? " container of " : " containers of ",
                           wanted.memory_mb, " MB and ", wanted.cores,
                           wanted.cores == 1 ? " core" : " cores"));
  }
  if (sizes.empty()) return "";
  return StrCat("waits for ", absl::StrJoin(sizes, " and "),
                ", for which YARN has no room in queue ", app.queue,
                ": all tasks must have theirs before the first one starts");
}

Json Describe(const Application& app) {
  std::string phase = app.state == "RUNNING" ? "running" : "pending";
  if (app.has_ended()) phase = app.final_status == "SUCCEEDED" ? "succeeded" : "failed";
  std::string message = phase == "failed" ? OneLine(app.diagnostics) : "";
  if (message.starts_with(kFailed)) message.erase(0, kFailed.size());
  return {{"name", app.name},
          {"phase", phase},
          {"message", message},
          {"start_time", app.started_seconds},
          {"completion_time", app.finished_seconds},
          {"application", app.id},
          {"tasks", Json::array()}};
}

}  // namespace muster::launch::yarn
