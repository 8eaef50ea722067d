#include "muster/cli/jobs/job_follow.h"

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <utility>

#include "muster/base/terminal.h"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/common/next_steps.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/job_printer.h"
#include "muster/cli/jobs/job_tellers.h"
#include "muster/cli/jobs/run_here.h"

namespace muster::cli {
namespace {

using formats::Json;
using formats::JsonFields;

constexpr auto kLook = std::chrono::seconds(1);  // between two looks at the job
// An API server that starts refuses those whom it has let in before.
constexpr auto kStarts = std::chrono::seconds(15);

bool MayAnswerAgain(const absl::Status& status, std::chrono::steady_clock::time_point last_answer) {
  if (absl::IsUnavailable(status)) return true;
  return absl::IsPermissionDenied(status) &&
         std::chrono::steady_clock::now() - last_answer < kStarts;
}

}  // namespace

std::unique_ptr<TaskBoard> MakeBoard(size_t tasks, const Clock& clock) {
  if (tasks < 2 || !CanRewrite(STDERR_FILENO)) return nullptr;
  return std::make_unique<TaskBoard>(STDERR_FILENO, clock);
}

LogFollower::Options MakeLogOptions(std::vector<job::TaskId> tasks, std::FILE* out,
                                    TaskBoard* board) {
  const bool prefix = tasks.size() > 1;
  LogFollower::Options options{
      .tasks = std::move(tasks), .prefix = prefix, .color = WantsColor(fileno(out))};
  if (board == nullptr) return options;
  const bool to_terminal = isatty(fileno(out)) == 1;
  options.wants = [board, to_terminal](const std::string& task, std::string_view line) {
    if (board->ConsumeProgress(task, line) && to_terminal) return false;
    if (to_terminal) board->Clear();
    return true;
  };
  return options;
}

std::vector<job::TaskId> ListTasks(const job::JobSpec& spec) {
  std::vector<job::TaskId> tasks;
  for (const auto& [type, replica] : spec.replicas) {
    for (int i = 0; i < replica.replicas; ++i) tasks.push_back({type, i});
  }
  return tasks;
}

absl::Status ReportEnd(const Json& job) {
  JsonFields fields(job, "job");
  if (fields.Text("phase") == "succeeded") {
    SayOfJob(JobLine(job));
    return absl::OkStatus();
  }
  std::fputs(StrCat(FailureText(job), HangText(job)).c_str(), stderr);
  return absl::AbortedError(JobLine(job));
}

absl::Status FollowElsewhere(control::JobPlace& place, const std::string& name,
                             const std::vector<job::TaskId>& tasks, std::FILE* out) {
  const InterruptScope interrupt;
  std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves (| head -1) ends no job
  const SystemClock clock;
  const auto board = MakeBoard(tasks.size(), clock);
  MUSTER_ASSIGN_OR_RETURN(const auto logs,
                          LogFollower::Open(place, MakeLogOptions(tasks, out, board.get()), out));
  const Say say = [&](const std::string& text) {
    if (board != nullptr) board->Clear();
    SayOfJob(text);
  };
  FailureTeller failures(say);
  ProblemTeller problems(say);
  bool told_hidden = false;
  auto next_look = std::chrono::steady_clock::now();
  auto last_answer = next_look - kStarts;
  while (!InterruptScope::requested() && !logs->broken()) {
    if (std::chrono::steady_clock::now() >= next_look) {
      const auto job = place.Describe();
      if (job.ok()) last_answer = std::chrono::steady_clock::now();
      if (!job.ok() && !MayAnswerAgain(job.status(), last_answer)) return job.status();
      if (job.ok()) {
        failures.Tell(*job);
        problems.Tell(*job);
        if (board != nullptr) board->SetJob(*job);
        if (HasEnded(*job)) {
          logs->Print(/*last=*/true);
          if (board != nullptr) board->Clear();
          return ReportEnd(*job);
        }
      }
      next_look = std::chrono::steady_clock::now() + kLook;
    }
    logs->PrintOrWait(std::chrono::duration<double>(kLook).count());
    if (const absl::Status hidden = logs->status();
        absl::IsPermissionDenied(hidden) && !told_hidden) {
      told_hidden = true;
      say(StrCat("the output of the tasks is not shown: ", ToStd(hidden.message())));
    }
    if (board != nullptr) board->Draw();
  }
  if (board != nullptr) board->Clear();
  return absl::CancelledError(StrCat("the job ", name, " continues: muster logs -f ", name,
                                     " shows it again, muster stop ", name, " ends it"));
}

absl::Status FollowByName(const std::string& name, const job::JobSpec& spec, std::FILE* out) {
  MUSTER_ASSIGN_OR_RETURN(const auto place, OpenJob(name));
  MUSTER_RETURN_IF_ERROR(FollowElsewhere(*place, name, ListTasks(spec), out));
  SayNextSteps({StrCat("muster logs ", name), StrCat("muster rm ", name)});
  return absl::OkStatus();
}

}  // namespace muster::cli
