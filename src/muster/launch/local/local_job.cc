#include "muster/launch/local/local_job.h"

#include <cstdlib>
#include <utility>

#include "muster/control/job_run.h"
#include "muster/files/file_systems.h"
#include "muster/launch/local/staging.h"
#include "muster/process/network_namespace.h"

namespace muster::launch::local {
namespace {

using control::GetNote;

constexpr char kShareGpusNote[] = "share_gpus";      // as kIsolatedNote
constexpr char kMetricsPortNote[] = "metrics_port";  // "": none

constexpr double kFinishSeconds = 15;  // for hosts to tidy up and hand over the last output

std::string YesOrNo(bool value) { return value ? "yes" : "no"; }

// Where the job was told to; without a port of its own on the last coordinator's again, or where
// another program has taken that meanwhile on any: agents that live then end after the lease, and
// their tasks start again by policy.
// A job that is only closed needs no metrics.
absl::StatusOr<std::unique_ptr<control::Service>> Listen(const control::JobFolder& folder,
                                                         const formats::Json& state, bool closing) {
  MUSTER_ASSIGN_OR_RETURN(control::ListenPlace place, control::GetListenPlace(state));
  control::ServiceOptions options;
  if (const int port = std::atoi(GetNote(state, kMetricsPortNote).c_str()); port != 0 && !closing) {
    options.open_port = port;
  }
  // A missing port for metrics is no reason to end a job that runs: a coordinator that is started
  // again runs without metrics if another program has taken their port.
  const bool again = control::GetLastPort(state) != 0;
  const auto listen = [&] {
    auto service = control::Service::Listen(folder, place, options);
    if (again && options.open_port && absl::IsAlreadyExists(service.status())) {
      options.open_port.reset();
      service = control::Service::Listen(folder, place, options);
    }
    return service;
  };
  if (place.port != 0) return listen();
  place.port = control::GetLastPort(state);
  auto service = listen();
  if (place.port == 0 || !absl::IsAlreadyExists(service.status())) return service;
  place.port = 0;
  return control::Service::Listen(folder, place, options);
}

// The journal comes last: with it the folder is a job.
absl::Status Fill(const control::JobFolder& folder, const job::JobSpec& spec,
                  control::CoordinatorOptions options, const LocalJobOptions& local,
                  const std::vector<StagedItem>& staged) {
  const bool tls = local.listen.tls;
  const bool elsewhere = local.prepare != nullptr;
  MUSTER_RETURN_IF_ERROR(control::MakeKeys(folder));
  if (tls && !elsewhere) {
    MUSTER_RETURN_IF_ERROR(control::UseCertificates(local.certificates, local.listen, folder));
  }
  if (!staged.empty()) {
    MUSTER_RETURN_IF_ERROR(Stage(staged, spec, folder));
    options.task_folders = elsewhere ? "work" : folder.work();
  }
  if (elsewhere) MUSTER_RETURN_IF_ERROR(local.prepare(folder));
  const auto files = io::NewPrivateFileSystem();
  MUSTER_ASSIGN_OR_RETURN(const auto journal, control::Journal::Open(*files, folder.journal()));
  MUSTER_ASSIGN_OR_RETURN(const auto coordinator,
                          control::Coordinator::New(spec, options, {.journal = journal.get()}));
  control::SetListenNotes(local.listen, coordinator.get());
  coordinator->SetNote(kShareGpusNote, YesOrNo(local.share_gpus));
  coordinator->SetNote(kIsolatedNote, YesOrNo(local.isolate));
  if (local.metrics_port != 0) coordinator->SetNote(kMetricsPortNote, StrCat(local.metrics_port));
  return coordinator->Write();
}

}  // namespace

absl::StatusOr<control::JobFolder> CreateJob(const std::string& jobs, const job::JobSpec& spec,
                                             const control::CoordinatorOptions& options,
                                             const LocalJobOptions& local) {
  MUSTER_RETURN_IF_ERROR(control::Coordinator::New(spec, options, {}).status());
  const std::string place = io::JoinPath(jobs, spec.name);
  if (!local.prepare) {
    MUSTER_RETURN_IF_ERROR(AssignDevices(spec, place, local.share_gpus).status());
  }
  MUSTER_ASSIGN_OR_RETURN(const auto staged, PlanStaging(spec, options.working_directory));
  if (local.listen.tls && !local.prepare) {
    MUSTER_RETURN_IF_ERROR(control::CheckCertificates(local.certificates, local.listen));
  }
  MUSTER_ASSIGN_OR_RETURN(auto folder, control::MakeJobFolder(jobs, spec.name));
  if (const absl::Status filled = Fill(folder, spec, options, local, staged); !filled.ok()) {
    (void)files::OpenFileSystems()->RemoveAll(folder.path);  // the first error counts
    return filled;
  }
  return folder;
}

absl::StatusOr<std::unique_ptr<LocalJob>> LocalJob::Run(const control::JobFolder& folder,
                                                        const std::string& program,
                                                        const std::string& cancelled,
                                                        const MakeLauncher& make) {
  MUSTER_ASSIGN_OR_RETURN(auto lock, control::JobLock::Take(folder.lock()));
  std::unique_ptr<LocalJob> job(new LocalJob(std::move(lock)));
  MUSTER_ASSIGN_OR_RETURN(job->journal_, control::Journal::Open(*job->files_, folder.journal()));
  const formats::Json& state = job->journal_->state();
  if (GetNote(state, kIsolatedNote) == "yes" && cancelled.empty()) {
    MUSTER_RETURN_IF_ERROR(process::IsolateNetwork());
  }
  MUSTER_ASSIGN_OR_RETURN(job->service_, Listen(folder, state, !cancelled.empty()));
  MUSTER_ASSIGN_OR_RETURN(const job::JobSpec spec, control::ParseJobSpec(state));
  DeviceAssignments devices;
  if (cancelled.empty() && !make) {
    const bool share_gpus = GetNote(state, kShareGpusNote) == "yes";
    MUSTER_ASSIGN_OR_RETURN(devices, AssignDevices(spec, folder.path, share_gpus));
  }
  LocalLauncherOptions options{.folder = folder,
                               .program = program,
                               .coordinator_url = job->service_->url(),
                               .devices = std::move(devices),
                               .on_change = [service = job->service_.get()] { service->Wake(); }};
  if (make) {
    MUSTER_ASSIGN_OR_RETURN(job->launcher_, make(std::move(options), spec));
  } else {
    MUSTER_ASSIGN_OR_RETURN(job->launcher_, LocalLauncher::Create(std::move(options)));
  }
  MUSTER_RETURN_IF_ERROR(control::RunCoordinator({.journal = job->journal_.get(),
                                                  .launcher = job->launcher_.get(),
                                                  .clock = &job->clock_,
                                                  .cancelled = cancelled},
                                                 job->service_.get()));
  return job;
}

void LocalJob::Finish() {
  if (launcher_ != nullptr && service_->finished()) launcher_->Finish(kFinishSeconds);
}

LocalJob::~LocalJob() {
  if (service_ != nullptr) Finish();
  if (service_ != nullptr) service_->Stop();  // its loop uses the launcher
  launcher_.reset();                          // whose thread wakes the service
}

}  // namespace muster::launch::local
