#include "muster/cli/jobs/run_here.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "muster/base/clock.h"
#include "muster/base/terminal.h"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/job_printer.h"
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

constexpr double kPauseSeconds = 2;  // for agents to obey
constexpr int kPauseLookMillis = 20;
constexpr int kFollowMillis = 1000;  // signals and changes end a wait; this is for what they miss

using Say = std::function<void(const std::string& text)>;

// Says once of each task that was given up or failed, and of checkpoints that vanished, while the
// job continues.
class FailureTeller {
 public:
  explicit FailureTeller(Say say) : say_(std::move(say)) {}
  void Tell(const Json& job) {
    JsonFields fields(job, "job");
    for (const Json& task : fields.List("tasks")) {
      JsonFields about(task, "task");
      const std::string why = about.Text("given_up");
      const int64_t incarnation = about.Int("incarnation", 0, 0, INT64_MAX);
      if (why.empty() || !given_up_.insert(incarnation).second) continue;
      say_(StrCat(about.Text("task"), ": ", why, "; it ends there by itself"));
    }
    for (const Json& failure : fields.List("failures")) {
      JsonFields about(failure, "failure");
      const int64_t incarnation = about.Int("incarnation", 0, 0, INT64_MAX);
      if (!told_.insert(incarnation).second) continue;
      say_(StrCat(about.Text("task"), " failed: ", about.Text("text"),
                  about.Bool("follow_up", false) ? " (a follow-up)" : ""));
    }
    const Json& losses = fields.List("lost_checkpoints");
    for (; losses_told_ < losses.size(); ++losses_told_) {
      say_(JsonFields(losses[losses_told_], "lost checkpoints").Text("text"));
    }
  }

 private:
  const Say say_;
  std::set<int64_t> told_, given_up_;
  size_t losses_told_ = 0;
};

// Says once that the job waits for its evaluator.
class FinishTeller {
 public:
  explicit FinishTeller(Say say) : say_(std::move(say)) {}
  void Tell(const Json& job) {
    JsonFields fields(job, "job");
    if (told_ || fields.Text("phase") != "finishing") return;
    for (const Json& task : fields.List("tasks")) {
      JsonFields about(task, "task");
      const std::string name = about.Text("task");
      if (!name.starts_with("evaluator") || about.Text("phase") != "running") continue;
      told_ = true;
      say_(StrCat("the training has succeeded; ", name,
                  " continues and is waited for until it has evaluated the last checkpoint and "
                  "exported; Ctrl-C ends it"));
    }
  }

 private:
  const Say say_;
  bool told_ = false;
};

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

// The block of the job's tasks, where stderr is a terminal and the job has several; else null.
std::unique_ptr<TaskBoard> MakeBoard(const job::JobSpec& spec, const Clock& clock) {
  if (spec.total() < 2 || !CanRewrite(STDERR_FILENO)) return nullptr;
  return std::make_unique<TaskBoard>(STDERR_FILENO, clock);
}

// What the tasks write, without what the block shows. A line among others on a terminal is written
// where the block was.
LogFollower::Options MakeLogOptions(const job::JobSpec& spec, std::FILE* out, TaskBoard* board) {
  LogFollower::Options options{
      .tasks = {}, .prefix = spec.total() > 1, .color = WantsColor(fileno(out))};
  for (const auto& [type, replica] : spec.replicas) {
    for (int i = 0; i < replica.replicas; ++i) options.tasks.push_back({type, i});
  }
  if (board == nullptr) return options;
  const bool to_terminal = isatty(fileno(out)) == 1;
  options.wants = [board, to_terminal](const std::string& task, std::string_view line) {
    if (board->ConsumeProgress(task, line) && to_terminal) return false;
    if (to_terminal) board->Clear();
    return true;
  };
  return options;
}

// Prints what the tasks write until the job has finished; the first Ctrl-C stops the job.
absl::Status Follow(const control::JobFolder& folder, control::JobPlace& place,
                    const job::JobSpec& spec, launch::local::LocalJob& job_here, std::FILE* out) {
  control::Service& service = job_here.service();
  const InterruptScope interrupt;
  const PauseScope pause;
  std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves (| head -1) ends no job
  const SystemClock clock;
  const auto board = MakeBoard(spec, clock);
  MUSTER_ASSIGN_OR_RETURN(const auto logs,
                          LogFollower::Open(place, MakeLogOptions(spec, out, board.get()), out));
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

absl::Status ToResult(const Json& job) {
  JsonFields fields(job, "job");
  if (fields.Text("phase") == "succeeded") {
    SayOfJob(JobLine(job));
    return absl::OkStatus();
  }
  std::fputs(StrCat(FailureText(job), HangText(job)).c_str(), stderr);
  return absl::AbortedError(JobLine(job));
}

absl::Status RunHere(const control::JobFolder& folder, const job::JobSpec& spec, std::FILE* out) {
  MUSTER_ASSIGN_OR_RETURN(const std::string program, OwnProgram());
  MUSTER_ASSIGN_OR_RETURN(auto job, launch::ssh::RunJob(folder, program));
  launch::local::LocalPlace place({.folder = folder, .program = program});
  MUSTER_RETURN_IF_ERROR(Follow(folder, place, spec, *job, out));
  const Json ended = job->service().Describe();
  job.reset();  // nobody runs it any more
  absl::Status result = ToResult(ended);
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
  std::printf("%s\n", request.spec.name.c_str());
  return absl::OkStatus();
}

}  // namespace muster::cli
