#include <poll.h>

#include <cstdio>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/verbs.h"
#include "muster/files/file_systems.h"
#include "muster/job/manifest.h"
#include "muster/launch/slots/slot_job.h"
#include "muster/process/deadline.h"

namespace muster::cli {
namespace {

constexpr int kSlotLookMillis = 200;
// the time in which the provider must hear that the job has ended
constexpr double kFinalSeconds = 60;
constexpr uint64_t kMaxJobFileBytes = uint64_t{1} << 20;

struct SlotCoordinatorFlags {
  control::JobFolder folder;
  std::string file, listen = "127.0.0.1", certificates;
  control::CoordinatorOptions options;
};

// Creates the job if there is none in the folder yet.
absl::Status CreateOnce(const SlotCoordinatorFlags& flags) {
  const auto files = files::OpenFileSystems();
  if (files->Stat(flags.folder.journal()).ok()) return absl::OkStatus();
  if (flags.file.empty()) {
    return absl::FailedPreconditionError(
        StrCat("there is no job in ", flags.folder.path, ": give its file with --job"));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string text,
                          io::ReadFile(*files, flags.file, kMaxJobFileBytes));
  MUSTER_ASSIGN_OR_RETURN(const job::Manifest manifest, job::ParseManifest(text, flags.file));
  MUSTER_ASSIGN_OR_RETURN(const control::ListenPlace listen,
                          control::ParseListenPlace(flags.listen, !flags.certificates.empty()));
  return launch::slots::CreateSlotJob(flags.folder, manifest.spec, flags.options,
                                      {.listen = listen, .certificates = flags.certificates});
}

absl::Status RunSlotCoordinator(const SlotCoordinatorFlags& flags) {
  MUSTER_RETURN_IF_ERROR(CreateOnce(flags));
  const InterruptScope interrupt;
  MUSTER_ASSIGN_OR_RETURN(const auto job, launch::slots::SlotJob::Run(flags.folder));
  control::Service& service = job->service();
  std::printf("%s\n", service.url().c_str());
  std::fflush(stdout);
  bool cancelled = false;
  while (!service.finished()) {
    pollfd change{.fd = service.change_fd(), .events = POLLIN, .revents = 0};
    poll(&change, 1, kSlotLookMillis);
    service.ClearChange();
    if (InterruptScope::requested() && !cancelled) {
      cancelled = true;
      service.Cancel(StrCat("stopped by ", InterruptScope::StoppedBy()));
    }
  }
  job->SetFinal();
  const auto deadline = process::Deadline::After(kFinalSeconds);
  while (!job->emptied() && !deadline.expired()) poll(nullptr, 0, kSlotLookMillis);
  return absl::OkStatus();
}

}  // namespace

// A provider of slots starts it on its own machine: it is not listed.
void AddSlotCoordinator(CLI::App& app) {
  const auto flags = std::make_shared<SlotCoordinatorFlags>();
  CLI::App* verb = app.add_subcommand(
      "slot-coordinator", "Runs a job in the slots that a provider gives (docs/formats/slots.md)");
  verb->group("");
  verb->add_option("folder", flags->folder.path, "The job's folder; made if it does not exist")
      ->required();
  verb->add_option("--job", flags->file, "A TFJob file, for a new job");
  verb->add_option("--listen", flags->listen, "ADDRESS or ADDRESS:PORT, for a new job");
  verb->add_option("--certs", flags->certificates, "A folder of muster certs, for a new job")
      ->check(CLI::ExistingDirectory);
  verb->add_option("--lease", flags->options.lease_seconds, "As for muster run, for a new job");
  verb->add_option("--grace", flags->options.grace_seconds, "As for muster run, for a new job");
  verb->callback([flags] { FailUnlessOk(RunSlotCoordinator(*flags)); });
}

}  // namespace muster::cli
