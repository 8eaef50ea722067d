// The verbs about jobs that were started: status, list, logs, stop, suspend, spec.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_join.h"

#include "CLI/CLI.hpp"
#include "muster/base/clock.h"
#include "muster/base/nearest.h"
#include "muster/base/terminal.h"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/job_printer.h"
#include "muster/cli/jobs/log_follower.h"
#include "muster/cli/jobs/run_here.h"
#include "muster/cli/jobs/status_watcher.h"
#include "muster/cli/jobs/verbs.h"

namespace muster::cli {
namespace {

using formats::Json;
using formats::JsonFields;

constexpr double kLookSeconds = 1;  // for what changes without notice

struct JobVerbFlags {
  std::string job, task;
  bool json = false, watch = false, follow = false, no_wait = false;
};

void PrintJson(const Json& json) { std::printf("%s\n", formats::PrintJson(json).c_str()); }

absl::Status ShowJobStatus(const std::string& name, const JobVerbFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const auto place, OpenJob(name));
  if (flags.watch) return WatchStatus(*place);
  MUSTER_ASSIGN_OR_RETURN(const Json job, place->Describe());
  if (flags.json) {
    PrintJson(job);
  } else {
    std::printf("%s%s%s", JobTable(job).c_str(), FailureText(job).c_str(), HangText(job).c_str());
  }
  return absl::OkStatus();
}

absl::Status ListAll(const JobVerbFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::string jobs, control::JobsFolder());
  RemoveAllExpired();
  std::vector<Json> all;
  for (const std::string& name : control::ListJobs(jobs)) {
    const auto place = OpenJob(name);
    if (absl::IsNotFound(place.status())) continue;  // removed meanwhile
    const auto job = place.ok() ? (*place)->Describe() : place.status();
    if (!job.ok()) {
      std::fprintf(stderr, "muster: %s\n", std::string(ToStd(job.status().message())).c_str());
    } else if (flags.json) {
      PrintJson(*job);
    } else {
      all.push_back(*job);
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Json& a, const Json& b) {
    const auto start = [](const Json& job) {
      return JsonFields(job, "job").Number("start_time", 0);
    };
    return start(a) < start(b);
  });
  if (!all.empty()) std::fputs(JobList(all, SystemClock().WallSeconds()).c_str(), stdout);
  return absl::OkStatus();
}

// Without a name: the only job there is, or a list of all.
absl::Status ShowStatus(const JobVerbFlags& flags) {
  if (!flags.job.empty()) return ShowJobStatus(flags.job, flags);
  MUSTER_ASSIGN_OR_RETURN(const std::string folder, control::JobsFolder());
  RemoveAllExpired();
  const std::vector<std::string> jobs = control::ListJobs(folder);
  if (jobs.size() == 1) return ShowJobStatus(jobs.front(), flags);
  if (jobs.empty()) {
    return absl::NotFoundError(
        "there is no job on this machine; muster run and muster train --workers N start one");
  }
  if (flags.watch) {
    throw CLI::ValidationError("--watch",
                               StrCat("give the name of one job: ", absl::StrJoin(jobs, ", ")));
  }
  MUSTER_RETURN_IF_ERROR(ListAll(flags));
  if (!flags.json) std::printf("\nmuster status JOB shows the tasks of one of them.\n");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<job::TaskId>> GetTasks(const JobVerbFlags& flags, const Json& job) {
  std::vector<job::TaskId> tasks;
  std::vector<std::string> names;
  const auto wanted = job::ParseTaskName(flags.task);
  JsonFields fields(job, "job");
  for (const Json& task : fields.List("tasks")) {
    names.push_back(JsonFields(task, "task").Text("task"));
    const auto id = job::ParseTaskName(names.back());
    if (id && (flags.task.empty() || id == wanted)) tasks.push_back(*id);
  }
  if (!tasks.empty()) return tasks;
  return absl::NotFoundError(
      StrCat("the job ", flags.job, " has no task ", flags.task, DidYouMean(flags.task, names)));
}

absl::Status ShowLogs(const JobVerbFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const auto place, OpenJob(flags.job));
  MUSTER_ASSIGN_OR_RETURN(const Json job, place->Describe());
  MUSTER_ASSIGN_OR_RETURN(const auto tasks, GetTasks(flags, job));
  const InterruptScope interrupt;
  const bool color = WantsColor(STDOUT_FILENO);
  MUSTER_ASSIGN_OR_RETURN(
      const auto logs,
      LogFollower::Open(*place, {.tasks = tasks, .prefix = tasks.size() > 1, .color = color},
                        stdout));
  bool is_over = HasEnded(job) || place->WaitForEnd(0);
  while (flags.follow && !is_over && !InterruptScope::requested() && !logs->broken()) {
    if (logs->PrintOrWait(kLookSeconds)) continue;
    const auto now = place->Describe();
    if (absl::IsUnavailable(now.status())) continue;  // it may answer again
    MUSTER_RETURN_IF_ERROR(now.status());
    is_over = HasEnded(*now) || place->WaitForEnd(0);
  }
  logs->Print(/*last=*/true);
  if (logs->broken()) return absl::UnavailableError("cannot write the output of the tasks");
  return logs->status();
}

absl::Status StopJob(const JobVerbFlags& flags) {
  const std::string why = "stopped by muster stop";
  const InterruptScope interrupt;
  MUSTER_ASSIGN_OR_RETURN(const auto place, OpenJob(flags.job));
  MUSTER_ASSIGN_OR_RETURN(const Json job, place->Describe());
  if (HasEnded(job)) {
    std::fprintf(stderr, "muster: %s\n", JobLine(job).c_str());
    return absl::OkStatus();
  }
  MUSTER_RETURN_IF_ERROR(place->Stop(why));
  if (flags.no_wait) return absl::OkStatus();
  while (!place->WaitForEnd(kLookSeconds)) {  // a signal may come just before it waits
    if (InterruptScope::requested()) return absl::OkStatus();
    // Whoever runs the job now may not know it; an error is seen below.
    place->Stop(why).IgnoreError();
  }
  MUSTER_ASSIGN_OR_RETURN(const Json ended, place->Describe());
  if (HasEnded(ended)) return absl::OkStatus();
  return absl::AbortedError(JobLine(ended));
}

absl::Status SuspendJob(const JobVerbFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const auto place, OpenJob(flags.job));
  return place->Suspend(true);
}

// {"cluster": {"ps": ["host:port"], ...}}: what a client of a standing cluster needs.
absl::Status ShowSpec(const JobVerbFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const auto place, OpenJob(flags.job));
  MUSTER_ASSIGN_OR_RETURN(const Json job, place->Describe());
  Json cluster = Json::object();
  JsonFields fields(job, "job");
  for (const Json& task : fields.List("tasks")) {
    JsonFields about(task, "task");
    const auto id = job::ParseTaskName(about.Text("task"));
    if (!id || id->type == job::TaskType::kEvaluator) continue;
    if (about.Text("address").empty()) {
      return absl::FailedPreconditionError(
          StrCat(about.Text("task"), " has no address yet: ask again when it runs"));
    }
    cluster[std::string(job::TypeName(id->type))].push_back(about.Text("address"));
  }
  PrintJson({{"cluster", cluster}});
  return absl::OkStatus();
}

CLI::App* AddVerb(CLI::App& app, const char* name, const char* about, const char* example,
                  absl::Status (*run)(const JobVerbFlags&),
                  const std::shared_ptr<JobVerbFlags>& flags) {
  CLI::App* const verb = app.add_subcommand(name, about);
  verb->footer(StrCat("Example:\n  ", example));
  verb->callback([flags, run] { FailUnlessOk(run(*flags)); });
  return verb;
}

}  // namespace

void AddJobVerbs(CLI::App& app) {
  const auto flags = std::make_shared<JobVerbFlags>();
  const auto add_job = [&](CLI::App* verb, const char* about) {
    return verb->add_option("job", flags->job, about)->check(JobNameError)->type_name("JOB");
  };
  const auto with_job = [&](CLI::App* verb) {
    add_job(verb, "Its name, as muster list shows it")->required();
    return verb;
  };
  CLI::App* const status = AddVerb(app, "status", "Show the state of a job and its tasks",
                                   "muster status train-5f3a1 --watch", ShowStatus, flags);
  add_job(status, "Its name, as muster list shows it (default: the only job, or all in a list)");
  CLI::Option* const json = status->add_flag("--json", flags->json, "One JSON object");
  status
      ->add_flag("--watch", flags->watch, "Show the table, or its changes, until the job has ended")
      ->excludes(json);
  AddVerb(app, "list", "List the jobs of this machine", "muster list", ListAll, flags)
      ->add_flag("--json", flags->json, "One JSON object per line");
  CLI::App* const logs = with_job(AddVerb(app, "logs", "Show the output of a job's tasks",
                                          "muster logs -f train-5f3a1 worker-0", ShowLogs, flags));
  logs->add_option("task", flags->task, "Only this task (default: all tasks, with names in front)");
  logs->add_flag("-f,--follow", flags->follow, "Continue until the job has ended");
  with_job(AddVerb(app, "stop", "End a job: SIGTERM, then SIGKILL", "muster stop train-5f3a1",
                   StopJob, flags))
      ->add_flag("--no-wait", flags->no_wait, "Do not wait until it has ended");
  with_job(AddVerb(app, "suspend", "End a job's tasks until muster resume starts them again",
                   "muster suspend train-5f3a1", SuspendJob, flags));
  with_job(AddVerb(app, "spec", "Print a job's cluster as JSON, for a client that connects to it",
                   "muster spec train-5f3a1", ShowSpec, flags));
}

}  // namespace muster::cli
