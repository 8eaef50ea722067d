#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "muster/cli/cli.h"
#include "muster/cli/interrupt.h"
#include "muster/cli/job_client.h"
#include "muster/cli/start_coordinator.h"
#include "muster/launch/local/local_job.h"

namespace muster::cli {
namespace {

constexpr int kCoordinatorMillis = 1000;

struct CoordinatorFlags {
  control::JobFolder folder;
  int ready_fd = -1;
};

void TellStarter(int fd, const std::string& text) {
  if (fd < 0) return;
  (void)!write(fd, text.data(), text.size());  // a starter that is gone needs no answer
  close(fd);
}

absl::Status RunCoordinator(const CoordinatorFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::string program, OwnProgram());
  const InterruptScope interrupt;
  const auto job = launch::local::LocalJob::Run(flags.folder, program);
  TellStarter(flags.ready_fd, job.ok() ? "ok" : std::string(ToStd(job.status().message())));
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

absl::Status ResumeJob(const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(const auto folder, FindJob(name));
  if (const auto pid = control::LivingCoordinator(folder)) {
    return absl::FailedPreconditionError(
        StrCat("the job ", name, " runs: its coordinator is process ", *pid));
  }
  return StartCoordinator(folder);
}

}  // namespace

// Started by `run --detach` and `resume`: it is not listed.
void AddCoordinator(CLI::App& app) {
  const auto flags = std::make_shared<CoordinatorFlags>();
  CLI::App* verb = app.add_subcommand("coordinator", "Runs a job (started by muster run --detach)");
  verb->group("");
  verb->add_option("folder", flags->folder.path, "The job's")->required();
  verb->add_option("--ready-fd", flags->ready_fd, "Told when it runs");
  verb->callback([flags] { FailUnlessOk(RunCoordinator(*flags)); });
}

void AddResume(CLI::App& app) {
  const auto name = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("resume", "Goes on with a job whose coordinator has died");
  verb->footer("Example:\n  muster resume train-5f3a1");
  verb->add_option("job", *name, "Its name, as muster list shows it")
      ->required()
      ->check(JobNameError);
  verb->callback([name] { FailUnlessOk(ResumeJob(*name)); });
}

}  // namespace muster::cli
