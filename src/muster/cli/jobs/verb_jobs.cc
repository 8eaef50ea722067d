// The verbs about jobs that were started: status, list, logs, stop, suspend, spec.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"

#include "CLI/CLI.hpp"
#include "muster/base/clock.h"
#include "muster/base/nearest.h"
#include "muster/base/terminal.h"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/job_list.h"
#include "muster/cli/jobs/job_printer.h"
#include "muster/cli/jobs/job_tellers.h"
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
  std::vector<std::string> jobs;  // of the verbs that take several
  bool json = false, watch = false, follow = false, no_wait = false;
  WhereFlags where;
};

void PrintJson(const Json& json) { std::printf("%s\n", formats::PrintJson(json).c_str()); }

absl::Status ShowJobStatus(const std::string& name, const JobVerbFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const auto place, OpenJob(name, flags.where));
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
  MUSTER_ASSIGN_OR_RETURN(std::vector<Json> all, flags.where.is_elsewhere()
                                                     ? DescribeElsewhere(flags.where)
                                                     : DescribeAllHere(SayOfJob));
  if (flags.json) {
    for (const Json& job : all) PrintJson(job);
    return absl::OkStatus();
  }
  std::stable_sort(all.begin(), all.end(), [](const Json& a, const Json& b) {
    const auto start = [](const Json& job) {
      return JsonFields(job, "job").Number("start_time", 0);
    };
    return start(a) < start(b);
  });
  const size_t columns = isatty(STDOUT_FILENO) != 0 ? TerminalWidth(STDOUT_FILENO) : 0;
  if (!all.empty()) {
    std::fputs(JobList(all, SystemClock().WallSeconds(), columns).c_str(), stdout);
  }
  return absl::OkStatus();
}

// Without a name: the only job there is, or a list of all.
absl::Status ShowStatus(const JobVerbFlags& flags) {
  if (!flags.job.empty()) return ShowJobStatus(flags.job, flags);
  if (flags.where.is_elsewhere() && !flags.watch) return ListAll(flags);
  if (flags.where.is_elsewhere()) throw CLI::ValidationError("--watch", "give the name of one job");
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
  MUSTER_ASSIGN_OR_RETURN(const auto place, OpenJob(flags.job, flags.where));
  MUSTER_ASSIGN_OR_RETURN(const Json job, place->Describe());
  MUSTER_ASSIGN_OR_RETURN(const auto tasks, GetTasks(flags, job));
  const InterruptScope interrupt;
  const bool color = WantsColor(STDOUT_FILENO);
  MUSTER_ASSIGN_OR_RETURN(
      const auto logs,
      LogFollower::Open(*place, {.tasks = tasks, .prefix = tasks.size() > 1, .color = color},
                        stdout));
  ProblemTeller problems(SayOfJob);
  bool is_over = HasEnded(job) || place->WaitForEnd(0);
  if (!is_over) problems.Tell(job);
  while (flags.follow && !is_over && !InterruptScope::requested() && !logs->broken()) {
    const bool printed = logs->PrintOrWait(kLookSeconds);
    if (absl::IsPermissionDenied(logs->status())) return logs->status();
    if (printed) continue;
    const auto now = place->Describe();
    if (absl::IsUnavailable(now.status())) continue;  // it may answer again
    MUSTER_RETURN_IF_ERROR(now.status());
    problems.Tell(*now);
    is_over = HasEnded(*now) || place->WaitForEnd(0);
  }
  logs->Print(/*last=*/true);
  if (logs->broken()) return absl::UnavailableError("cannot write the output of the tasks");
  return logs->status();
}

constexpr char kStopReason[] = "stopped by muster stop";

// Null: the job has ended already; what it has left running is told to end, too.
absl::StatusOr<std::unique_ptr<control::JobPlace>> TellToStop(const std::string& name,
                                                              const WhereFlags& where) {
  MUSTER_ASSIGN_OR_RETURN(auto place, OpenJob(name, where));
  MUSTER_ASSIGN_OR_RETURN(const Json job, place->Describe());
  MUSTER_RETURN_IF_ERROR(place->Stop(kStopReason));
  if (!HasEnded(job)) return place;
  SayOfJob(JobLine(job));
  return nullptr;
}

absl::Status WaitUntilStopped(const std::string& name, control::JobPlace& place) {
  ProblemTeller problems(SayOfJob);
  bool said = false;
  while (!place.WaitForEnd(kLookSeconds)) {  // a signal may come just before it waits
    if (!std::exchange(said, true)) {
      SayOfJob(StrCat("the job ", name, " is told to stop; Ctrl-C ends only the waiting"));
    }
    if (const auto now = place.Describe(); now.ok()) problems.Tell(*now);
    if (InterruptScope::requested()) return absl::OkStatus();
    // Whoever runs the job now may not know it; an error is seen below.
    place.Stop(kStopReason).IgnoreError();
  }
  MUSTER_ASSIGN_OR_RETURN(const Json ended, place.Describe());
  if (HasEnded(ended)) return absl::OkStatus();
  return absl::AbortedError(JobLine(ended));
}

// Tells all jobs to stop, then waits for each of them. Returns the last error.
absl::Status StopJobs(const JobVerbFlags& flags) {
  const InterruptScope interrupt;
  std::map<std::string, std::unique_ptr<control::JobPlace>> told;
  absl::Status result;
  const auto keep = [&](const absl::Status& status) {
    if (status.ok()) return;
    if (!result.ok()) SayOfJob(std::string(ToStd(result.message())));
    result = status;
  };
  for (const std::string& name : flags.jobs) {
    auto place = TellToStop(name, flags.where);
    keep(place.status());
    if (place.ok() && *place != nullptr) told[name] = *std::move(place);
  }
  for (const auto& [name, place] : told) {
    if (flags.no_wait) {
      TellUnheard(*place, SayOfJob);
    } else {
      keep(WaitUntilStopped(name, *place));
    }
  }
  return result;
}

absl::Status SuspendJob(const JobVerbFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const auto place, OpenJob(flags.job, flags.where));
  MUSTER_RETURN_IF_ERROR(place->Suspend(true));
  TellUnheard(*place, SayOfJob);
  return absl::OkStatus();
}

// {"cluster": {"ps": ["host:port"], ...}}: what a client of a standing cluster needs.
absl::Status ShowSpec(const JobVerbFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const auto place, OpenJob(flags.job, flags.where));
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
  AddWhereFlags(*verb, &flags->where);
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
  AddVerb(app, "list", "List the jobs of this machine, or of a cluster", "muster list", ListAll,
          flags)
      ->add_flag("--json", flags->json, "One JSON object per line");
  CLI::App* const logs = with_job(AddVerb(app, "logs", "Show the output of a job's tasks",
                                          "muster logs -f train-5f3a1 worker-0", ShowLogs, flags));
  logs->add_option("task", flags->task, "Only this task (default: all tasks, with names in front)");
  logs->add_flag("-f,--follow", flags->follow, "Continue until the job has ended");
  CLI::App* const stop = AddVerb(app, "stop", "End jobs: SIGTERM, then SIGKILL",
                                 "muster stop train-5f3a1", StopJobs, flags);
  stop->add_option("job", flags->jobs, "Their names, as muster list shows them")
      ->required()
      ->check(JobNameError)
      ->type_name("JOB");
  stop->add_flag("--no-wait", flags->no_wait, "Do not wait until they have ended");
  with_job(AddVerb(app, "suspend", "End a job's tasks until muster resume starts them again",
                   "muster suspend train-5f3a1", SuspendJob, flags));
  with_job(AddVerb(app, "spec", "Print a job's cluster as JSON, for a client that connects to it",
                   "muster spec train-5f3a1", ShowSpec, flags));
}

}  // namespace muster::cli
