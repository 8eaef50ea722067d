#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
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
  launch::slots::MovingJobOptions moving;
  bool certifies = false, ends_with_stdin = false;
};

using Job = absl::StatusOr<std::unique_ptr<launch::slots::SlotJob>>;

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
  return launch::slots::CreateSlotJob(
      flags.folder, manifest.spec, flags.options,
      {.listen = listen, .certificates = flags.certificates, .certifies = flags.certifies});
}

Job OpenSlotJob(const SlotCoordinatorFlags& flags) {
  if (!flags.moving.state.empty()) {
    return launch::slots::SlotJob::RunMoving(flags.folder, flags.moving);
  }
  MUSTER_RETURN_IF_ERROR(CreateOnce(flags));
  return launch::slots::SlotJob::Run(flags.folder);
}

// Nothing may be waited for: agents must not be answered any more.
[[noreturn]] void EndAtOnce(const absl::Status& status) {
  std::fprintf(stderr, "muster: %s\n", std::string(ToStd(status.message())).c_str());
  std::_Exit(1);
}

// The provider tells people how the job has ended.
void SayFinal(control::Service& service) {
  const formats::Json job = service.Describe();
  formats::JsonFields fields(job, "job");
  std::string message = fields.Text("message");
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::printf("final %s %s\n", fields.Text("phase").c_str(), message.c_str());
  std::fflush(stdout);
}

absl::Status RunSlotCoordinator(const SlotCoordinatorFlags& flags) {
  const InterruptScope interrupt;
  MUSTER_ASSIGN_OR_RETURN(const auto job, OpenSlotJob(flags));
  control::Service& service = job->service();
  std::printf("%s\n", job->url().c_str());
  std::fflush(stdout);
  MUSTER_RETURN_IF_ERROR(job->PublishUrl());
  bool cancelled = false;
  while (!service.finished()) {
    pollfd waits[] = {{.fd = service.change_fd(), .events = POLLIN, .revents = 0},
                      {.fd = flags.ends_with_stdin ? STDIN_FILENO : -1, .events = 0, .revents = 0}};
    poll(waits, 2, kSlotLookMillis);
    if (waits[1].revents != 0) return absl::AbortedError("the provider has ended");
    service.ClearChange();
    if (const absl::Status state = job->CheckState(); !state.ok()) EndAtOnce(state);
    // A platform that ends the machine's part of a job says so by SIGTERM, too: the next attempt
    // continues the job.
    if (InterruptScope::requested() && !flags.moving.state.empty()) {
      EndAtOnce(absl::AbortedError(StrCat("ended by ", InterruptScope::StoppedBy())));
    }
    if (InterruptScope::requested() && !cancelled) {
      cancelled = true;
      service.Cancel(StrCat("stopped by ", InterruptScope::StoppedBy()));
    }
  }
  job->SetFinal();
  const auto deadline = process::Deadline::After(kFinalSeconds);
  while (!job->emptied() && !deadline.expired()) poll(nullptr, 0, kSlotLookMillis);
  SayFinal(service);
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
  auto* const certificates =
      verb->add_option("--certs", flags->certificates, "A folder of muster certs, for a new job")
          ->check(CLI::ExistingDirectory);
  verb->add_flag("--certify", flags->certifies,
                 "Certify the keys of agents by the authority in that folder")
      ->needs(certificates);
  verb->add_option("--lease", flags->options.lease_seconds, "As for muster run, for a new job");
  verb->add_option("--grace", flags->options.grace_seconds, "As for muster run, for a new job");
  auto* const state =
      verb->add_option("--state", flags->moving.state,
                       "The job's state, in a folder on any file system (shared_state.h): the job "
                       "moves with its provider");
  verb->add_option("--attempt", flags->moving.attempt, "The provider's attempt")->needs(state);
  verb->add_option("--host", flags->moving.host, "By which agents reach this machine")
      ->needs(state);
  verb->add_option("--state-patience", flags->moving.state_patience_seconds,
                   "Seconds for which the state may be out of reach")
      ->needs(state);
  verb->add_option("--url-file", flags->moving.url_file, "Where agents find the coordinator's URL")
      ->needs(state);
  verb->add_flag("--end-with-stdin", flags->ends_with_stdin,
                 "End, as if killed, when the other end of standard input is closed");
  verb->callback([flags] { FailUnlessOk(RunSlotCoordinator(*flags)); });
}

}  // namespace muster::cli
