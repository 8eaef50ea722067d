#include "muster/cli/jobs/run_here.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <utility>

#include "muster/base/clock.h"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/job_follow.h"
#include "muster/cli/jobs/job_tellers.h"
#include "muster/cli/jobs/log_follower.h"
#include "muster/cli/jobs/start_coordinator.h"
#include "muster/cli/jobs/task_board.h"
#include "muster/control/agent.h"
#include "muster/io/file_system.h"
#include "muster/launch/local/job_removal.h"
#include "muster/launch/local/local_job.h"
#include "muster/launch/local/local_place.h"
#include "muster/launch/ssh/hosts_job.h"
#include "muster/process/deadline.h"
#include "muster/process/network_namespace.h"

namespace muster::cli {
namespace {

using formats::Json;
using formats::JsonFields;

constexpr double kPauseSeconds = 10;  // for agents to obey, on a machine under load
constexpr int kPauseLookMillis = 20;
constexpr int kFollowMillis = 1000;  // signals and changes end a wait; this is for what they miss

std::atomic<bool> pause_requested{false};

// Ctrl-Z, for its lifetime; where it is ignored (no job control) it stays so.
class PauseScope {
 public:
  PauseScope() {
    pause_requested = false;
    const auto before = std::signal(SIGTSTP, [](int) { pause_requested = true; });
    if (before == SIG_IGN) std::signal(SIGTSTP, SIG_IGN);
  }
  ~PauseScope() { std::signal(SIGTSTP, SIG_DFL); }
  PauseScope(const PauseScope&) = delete;
  PauseScope& operator=(const PauseScope&) = delete;
};

bool AllPaused(const Json& job) {
  JsonFields fields(job, "job");
  const auto& tasks = fields.List("tasks");
  return std::all_of(tasks.begin(), tasks.end(), [](const Json& task) {
    JsonFields about(task, "task");
    return about.Text("phase") != "running" || about.Text("said") == control::kPausedText;
  });
}

// The tasks stand still, then this process does, until it is continued (fg, bg).
void Pause(control::Service& service) {
  pause_requested = false;
  service.SetPaused(true);
  const auto deadline = process::Deadline::After(kPauseSeconds);
  while (!AllPaused(service.Describe()) && !deadline.expired()) poll(nullptr, 0, kPauseLookMillis);
  SayOfJob("paused, with all its tasks: fg or bg continues the job");
  std::raise(SIGSTOP);
  service.SetPaused(false);
}

// Prints what the tasks write until the job has finished; the first Ctrl-C stops the job.
absl::Status Follow(const control::JobFolder& folder, control::JobPlace& place,
                    const job::JobSpec& spec, launch::local::LocalJob& job_here, std::FILE* out) {
  control::Service& service = job_here.service();
  const InterruptScope interrupt;
  const PauseScope pause;
  std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves (| head -1) ends no job
  const SystemClock clock;
  const std::vector<job::TaskId> tasks = ListTasks(spec);
  const auto board = MakeBoard(tasks.size(), clock);
  MUSTER_ASSIGN_OR_RETURN(const auto logs,
                          LogFollower::Open(place, MakeLogOptions(tasks, out, board.get()), out));
  const Say say = [&](const std::string& text) {
    if (board != nullptr) board->Clear();
    SayOfJob(text);
  };
  FailureTeller failures(say);
  FinishTeller finish(say);
  bool cancelled = false, told_broken = false;
  while (!service.finished()) {
    pollfd waits[] = {{.fd = service.change_fd(), .events = POLLIN, .revents = 0},
                      {.fd = logs->change_fd(), .events = POLLIN, .revents = 0}};
    poll(waits, 2, kFollowMillis);
    if (pause_requested && launch::ssh::HasHosts(folder)) {
      pause_requested = false;
      say("Ctrl-Z does not pause a job on other hosts: muster suspend ends its tasks until muster "
          "resume");
    }
    if (pause_requested) {
      if (board != nullptr) board->Clear();
      Pause(service);
    }
    if (InterruptScope::requested() && !cancelled) {
      cancelled = true;
      say("stopping; after a second Ctrl-C muster leaves at once, and the tasks end by themselves "
          "some seconds later");
      service.Cancel(StrCat("stopped by ", InterruptScope::StoppedBy()));
    }
    const bool changed = waits[0].revents != 0;
    if (changed) service.ClearChange();
    if (changed || board != nullptr) {
      const Json job = service.Describe();
      failures.Tell(job);
      finish.Tell(job);
      if (board != nullptr) board->SetJob(job);
    }
    logs->ClearChange();
    logs->Print();
    if (board != nullptr) board->Draw();
    if (logs->broken() && !told_broken) {
      told_broken = true;
      say(StrCat("nobody reads the output any more; the job continues: muster logs -f ",
                 spec.name));
    }
  }
  if (board != nullptr) board->Clear();
  job_here.Finish();
  failures.Tell(service.Describe());
  logs->Print(/*last=*/true);
  return absl::OkStatus();
}

absl::Status RunHere(const control::JobFolder& folder, const job::JobSpec& spec, std::FILE* out) {
  MUSTER_ASSIGN_OR_RETURN(const std::string program, OwnProgram());
  MUSTER_ASSIGN_OR_RETURN(auto job, launch::ssh::RunJob(folder, program));
  launch::local::LocalPlace place({.folder = folder, .program = program});
  MUSTER_RETURN_IF_ERROR(Follow(folder, place, spec, *job, out));
  const Json ended = job->service().Describe();
  job.reset();  // nobody runs it any more
  absl::Status result = ReportEnd(ended);
  RemoveExpired(folder);
  return result;
}

}  // namespace

void SayOfJob(const std::string& text) { std::fprintf(stderr, "muster: %s\n", text.c_str()); }

std::vector<std::string> WithoutFlags(const std::vector<std::string>& arguments,
                                      const std::vector<std::string>& flags) {
  std::vector<std::string> kept;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string name = arguments[i].substr(0, arguments[i].find('='));
    if (std::find(flags.begin(), flags.end(), name) == flags.end()) {
      kept.push_back(arguments[i]);
    } else if (name == arguments[i]) {
      ++i;
    }
  }
  return kept;
}

void RemoveExpired(const control::JobFolder& folder) {
  std::string kept;
  const auto removed = launch::local::RemoveIfExpired(folder, SystemClock().WallSeconds(), &kept);
  if (!removed.ok() || !*removed) return;  // what is wrong with it is said when it is asked for
  SayOfJob(StrCat(
      "job ", io::Basename(folder.path), " is removed: its ttlSecondsAfterFinished has passed",
      kept.empty() ? "" : StrCat("; ", kept, " holds files that were not staged and stays")));
}

void RemoveAllExpired() {
  const auto jobs = control::JobsFolder();
  if (!jobs.ok()) return;
  for (const std::string& name : control::ListJobs(*jobs)) {
    RemoveExpired(control::JobFolder{io::JoinPath(*jobs, name)});
  }
}

absl::Status StartJob(const JobRequest& request, const launch::local::LocalJobOptions& local,
                      bool detach, std::FILE* out) {
  for (const std::string& note : request.notes) SayOfJob(note);
  RemoveAllExpired();
  // What is started from here on is in it, too.
  if (local.isolate) MUSTER_RETURN_IF_ERROR(process::IsolateNetwork());
  MUSTER_ASSIGN_OR_RETURN(const std::string jobs, control::JobsFolder());
  MUSTER_ASSIGN_OR_RETURN(
      const auto folder,
      launch::ssh::CreateJob(jobs, request.spec, request.options, local, request.hosts));
  if (!detach) {
    SayOfJob(StrCat("job ", request.spec.name, " in ", folder.path));
    return RunHere(folder, request.spec, out);
  }
  MUSTER_RETURN_IF_ERROR(StartSupervised(folder));
  std::fprintf(out, "%s\n", request.spec.name.c_str());
  return absl::OkStatus();
}

}  // namespace muster::cli
