#include "muster/cli/run_here.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "muster/cli/interrupt.h"
#include "muster/cli/job_client.h"
#include "muster/cli/job_printer.h"
#include "muster/cli/log_follower.h"
#include "muster/cli/start_coordinator.h"
#include "muster/launch/local/local_job.h"

namespace muster::cli {
namespace {

using formats::Json;
using formats::JsonFields;

constexpr int kFollowMillis = 1000;  // signals and changes end a wait; this is for what they miss

bool WantsColor(std::FILE* out) {
  return isatty(fileno(out)) == 1 && std::getenv("NO_COLOR") == nullptr;
}

// Says once of each task that failed while the job goes on.
class FailureTeller {
 public:
  void Tell(const Json& job) {
    JsonFields fields(job, "job");
    for (const Json& failure : fields.List("failures")) {
      JsonFields about(failure, "failure");
      const int64_t incarnation = about.Int("incarnation", 0, 0, INT64_MAX);
      if (!told_.insert(incarnation).second) continue;
      SayOfJob(StrCat(about.Text("task"), " failed: ", about.Text("text"),
                      about.Bool("follow_up", false) ? " (a follow-up)" : ""));
    }
  }

 private:
  std::set<int64_t> told_;
};

// Prints what the tasks write until the job has finished; the first Ctrl-C stops the job.
absl::Status Follow(const control::JobFolder& folder, const job::JobSpec& spec,
                    control::Service& service, std::FILE* out) {
  const InterruptScope interrupt;
  LogFollower::Options options{.tasks = {}, .prefix = spec.total() > 1, .color = WantsColor(out)};
  for (const auto& [type, replica] : spec.replicas) {
    for (int i = 0; i < replica.replicas; ++i) options.tasks.push_back({type, i});
  }
  LogFollower logs(folder, options, out);
  FailureTeller failures;
  bool cancelled = false;
  while (!service.finished()) {
    pollfd waits[] = {{.fd = service.change_fd(), .events = POLLIN, .revents = 0},
                      {.fd = logs.change_fd(), .events = POLLIN, .revents = 0}};
    poll(waits, 2, kFollowMillis);
    if (InterruptScope::requested() && !cancelled) {
      cancelled = true;
      SayOfJob("stopping; a second Ctrl-C leaves at once, the tasks then end within the lease");
      service.Cancel("stopped by Ctrl-C");
    }
    if (waits[0].revents != 0) {
      service.ClearChange();
      failures.Tell(service.Describe());
    }
    logs.ClearChange();
    logs.Print();
  }
  logs.Print(/*last=*/true);
  return absl::OkStatus();
}

absl::Status ResultOf(const Json& job) {
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
  MUSTER_ASSIGN_OR_RETURN(const auto job, launch::local::LocalJob::Run(folder, program));
  MUSTER_RETURN_IF_ERROR(Follow(folder, spec, job->service(), out));
  return ResultOf(job->service().Describe());
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

absl::Status StartJob(const JobRequest& request, const launch::local::JobAccess& access,
                      bool detach, std::FILE* out) {
  for (const std::string& note : request.notes) SayOfJob(note);
  MUSTER_ASSIGN_OR_RETURN(const std::string jobs, control::JobsFolder());
  MUSTER_ASSIGN_OR_RETURN(const auto folder,
                          launch::local::CreateJob(jobs, request.spec, request.options, access));
  if (!detach) {
    SayOfJob(StrCat("job ", request.spec.name, " in ", folder.path));
    return RunHere(folder, request.spec, out);
  }
  MUSTER_RETURN_IF_ERROR(StartSupervised(folder));
  std::printf("%s\n", request.spec.name.c_str());
  return absl::OkStatus();
}

}  // namespace muster::cli
