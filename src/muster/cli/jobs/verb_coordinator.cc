#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/job_tellers.h"
#include "muster/cli/jobs/run_here.h"
#include "muster/cli/jobs/start_coordinator.h"
#include "muster/cli/jobs/verbs.h"
#include "muster/launch/ssh/hosts_job.h"
#include "muster/process/keep_alive.h"

namespace muster::cli {
namespace {

constexpr int kCoordinatorMillis = 1000;

struct CoordinatorFlags {
  control::JobFolder folder;
  int ready_fd = -1;
};

void TellStarter(int fd, const absl::Status& status) {
  if (fd < 0) return;
  const std::string text = status.ok() ? "ok" : std::string(ToStd(status.message()));
  (void)!write(fd, text.data(), text.size());  // if the starter has gone, no one needs the answer
  close(fd);
}

absl::Status RunCoordinator(const CoordinatorFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::string program, OwnProgram());
  const InterruptScope interrupt;
  const auto job = launch::ssh::RunJob(flags.folder, program);
  TellStarter(flags.ready_fd, job.status());
  MUSTER_RETURN_IF_ERROR(job.status());
  control::Service& service = (*job)->service();
  bool cancelled = false;
  while (!service.finished()) {
    pollfd change{.fd = service.change_fd(), .events = POLLIN, .revents = 0};
    poll(&change, 1, kCoordinatorMillis);
    service.ClearChange();
    if (InterruptScope::requested() && !cancelled) {
      cancelled = true;
      service.Cancel("its coordinator was told to end");
    }
  }
  return absl::OkStatus();
}

// Blocks SIGTERM, SIGINT and SIGHUP, which from now on end nothing by themselves.
absl::StatusOr<process::Descriptor> BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  process::Descriptor taken(signalfd(-1, &signals, SFD_CLOEXEC));
  if (!taken.valid()) return ErrnoStatus(errno, "cannot make a signalfd");
  return taken;
}

absl::Status KeepCoordinator(const CoordinatorFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const auto stop, BlockStopSignals());
  MUSTER_ASSIGN_OR_RETURN(const auto lock, control::JobLock::Take(flags.folder.supervisor_lock()));
  auto coordinator = StartCoordinator(flags.folder);
  TellStarter(flags.ready_fd, coordinator.status());
  MUSTER_RETURN_IF_ERROR(coordinator.status());
  const auto say = [](const std::string& text) {
    std::fprintf(stderr, "muster: the coordinator died: %s\n", text.c_str());
  };
  const absl::Status ended =
      process::KeepAlive(*std::move(coordinator), [&] { return StartCoordinator(flags.folder); },
                         SystemClock(), {.stop_fd = stop.get(), .say = say});
  return Annotate(ended, "the coordinator has ended");
}

absl::Status Supervise(const CoordinatorFlags& flags) {
  absl::Status ended = KeepCoordinator(flags);
  RemoveExpired(flags.folder);  // no coordinator runs it any more
  return ended;
}

struct ResumeFlags {
  std::string job;
  WhereFlags where;
};

absl::Status ResumeJob(const ResumeFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const auto place, OpenJob(flags.job, flags.where));
  MUSTER_RETURN_IF_ERROR(place->Resume());
  TellUnheard(*place, SayOfJob);
  return absl::OkStatus();
}

void AddJobProcess(CLI::App& app, const char* name, const char* about,
                   absl::Status (*run)(const CoordinatorFlags&)) {
  const auto flags = std::make_shared<CoordinatorFlags>();
  CLI::App* verb = app.add_subcommand(name, about);
  verb->group("");
  verb->add_option("folder", flags->folder.path, "The job's folder")->required();
  verb->add_option("--ready-fd", flags->ready_fd, "A descriptor that is written to when it runs");
  verb->callback([flags, run] { FailUnlessOk(run(*flags)); });
}

}  // namespace

// `run --detach` and `resume` start them: they are not listed.
void AddCoordinator(CLI::App& app) {
  AddJobProcess(app, "coordinator", "Runs a job (started by muster supervise)", RunCoordinator);
  AddJobProcess(app, "supervise", "Runs a job's coordinator (started by muster run --detach)",
                Supervise);
}

void AddResume(CLI::App& app) {
  const auto flags = std::make_shared<ResumeFlags>();
  CLI::App* verb =
      app.add_subcommand("resume", "Continue a job that is suspended or has lost its coordinator");
  verb->footer("Example:\n  muster resume train-5f3a1");
  verb->add_option("job", flags->job, "Its name, as muster list shows it")
      ->required()
      ->check(JobNameError)
      ->type_name("JOB");
  AddWhereFlags(*verb, &flags->where);
  verb->callback([flags] { FailUnlessOk(ResumeJob(*flags)); });
}

}  // namespace muster::cli
