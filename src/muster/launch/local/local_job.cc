#include "muster/launch/local/local_job.h"

#include <cstdlib>
#include <utility>

#include "muster/launch/local/staging.h"
#include "muster/net/token.h"
#include "muster/process/proc.h"

namespace muster::launch::local {
namespace {

// Of the journal: where programs of this machine reach the coordinator; where it was told to
// listen, and whether with TLS.
constexpr char kUrlNote[] = "url", kListenNote[] = "listen", kTlsNote[] = "tls";

// The monotonic clock counts from there.
std::string BootId() {
  return process::ReadSmallFile("/proc/sys/kernel/random/boot_id").value_or("unknown");
}

// Of the last coordinator, which agents that live still talk to; 0: none.
int LastPort(const formats::Json& state) {
  formats::JsonFields fields(state, "journal");
  formats::JsonFields notes(fields.Object("notes"), "journal: notes");
  const std::string url = notes.Text(kUrlNote);
  const size_t colon = url.rfind(':');
  return colon == std::string::npos ? 0 : std::atoi(url.c_str() + colon + 1);
}

// Where the job was told to; without a port of its own on the last coordinator's again, or where
// another program has taken that meanwhile on any: agents that live then end after the lease, and
// their tasks start again by policy.
absl::StatusOr<std::unique_ptr<control::Service>> Listen(const control::JobFolder& folder,
                                                         const formats::Json& state) {
  formats::JsonFields fields(state, "journal");
  formats::JsonFields notes(fields.Object("notes"), "journal: notes");
  control::ListenPlace place;
  if (const std::string told = notes.Text(kListenNote); !told.empty()) {
    const bool tls = notes.Text(kTlsNote) == "yes";
    MUSTER_ASSIGN_OR_RETURN(place, control::ParseListenPlace(told, tls));
  }
  if (place.port != 0) return control::Service::Listen(folder, place);
  place.port = LastPort(state);
  auto service = control::Service::Listen(folder, place);
  if (place.port == 0 || !absl::IsAlreadyExists(service.status())) return service;
  place.port = 0;
  return control::Service::Listen(folder, place);
}

// The journal comes last: with it the folder is a job.
absl::Status Fill(const control::JobFolder& folder, const job::JobSpec& spec,
                  control::CoordinatorOptions options, const JobAccess& access,
                  const std::vector<StagedItem>& staged) {
  const bool tls = access.listen.tls;
  MUSTER_RETURN_IF_ERROR(net::MakeTokenFile(folder.token()).status());
  MUSTER_RETURN_IF_ERROR(net::MakeTokenFile(folder.data_key()).status());
  if (tls) {
    MUSTER_RETURN_IF_ERROR(control::TakeCertificates(access.certificates, access.listen, folder));
  }
  if (!staged.empty()) {
    MUSTER_RETURN_IF_ERROR(Stage(staged, spec, folder));
    options.task_folders = folder.work();
  }
  const auto files = io::NewLocalFileSystem();
  MUSTER_ASSIGN_OR_RETURN(const auto journal, control::Journal::Open(*files, folder.journal()));
  MUSTER_ASSIGN_OR_RETURN(const auto coordinator,
                          control::Coordinator::New(spec, options, {.journal = journal.get()}));
  coordinator->SetNote(kListenNote, control::PrintListenPlace(access.listen));
  coordinator->SetNote(kTlsNote, tls ? "yes" : "no");
  return coordinator->Write();
}

}  // namespace

absl::StatusOr<control::JobFolder> CreateJob(const std::string& jobs, const job::JobSpec& spec,
                                             const control::CoordinatorOptions& options,
                                             const JobAccess& access) {
  MUSTER_RETURN_IF_ERROR(control::Coordinator::New(spec, options, {}).status());
  MUSTER_RETURN_IF_ERROR(PlaceTasks(spec).status());
  MUSTER_ASSIGN_OR_RETURN(const auto staged, PlanStaging(spec, options.working_directory));
  if (access.listen.tls) {
    MUSTER_RETURN_IF_ERROR(control::CheckCertificates(access.certificates, access.listen));
  }
  MUSTER_ASSIGN_OR_RETURN(auto folder, control::MakeJobFolder(jobs, spec.name));
  if (const absl::Status filled = Fill(folder, spec, options, access, staged); !filled.ok()) {
    (void)io::NewLocalFileSystem()->RemoveAll(folder.path);  // the first error counts
    return filled;
  }
  return folder;
}

absl::StatusOr<std::unique_ptr<LocalJob>> LocalJob::Run(const control::JobFolder& folder,
                                                        const std::string& program) {
  MUSTER_ASSIGN_OR_RETURN(auto lock, control::JobLock::Take(folder.lock()));
  std::unique_ptr<LocalJob> job(new LocalJob(std::move(lock)));
  MUSTER_ASSIGN_OR_RETURN(job->journal_, control::Journal::Open(*job->files_, folder.journal()));
  MUSTER_ASSIGN_OR_RETURN(job->service_, Listen(folder, job->journal_->state()));
  MUSTER_ASSIGN_OR_RETURN(const job::JobSpec spec, control::SpecOfState(job->journal_->state()));
  MUSTER_ASSIGN_OR_RETURN(auto placements, PlaceTasks(spec));
  MUSTER_ASSIGN_OR_RETURN(
      job->launcher_,
      LocalLauncher::Create({.folder = folder,
                             .program = program,
                             .coordinator_url = job->service_->url(),
                             .placements = std::move(placements),
                             .on_change = [service = job->service_.get()] { service->Wake(); }}));
  MUSTER_ASSIGN_OR_RETURN(auto coordinator,
                          control::Coordinator::Resume({.journal = job->journal_.get(),
                                                        .launcher = job->launcher_.get(),
                                                        .clock = &job->clock_,
                                                        .clock_id = BootId()}));
  coordinator->SetNote(kUrlNote, job->service_->url());
  MUSTER_RETURN_IF_ERROR(coordinator->Write());
  job->service_->Run(std::move(coordinator));
  return job;
}

LocalJob::~LocalJob() {
  if (service_ != nullptr) service_->Stop();  // its loop uses the launcher
  launcher_.reset();                          // whose thread wakes the service
}

}  // namespace muster::launch::local
