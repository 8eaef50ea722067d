#include "muster/launch/slots/slot_job.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "muster/control/job_run.h"
#include "muster/control/task_certificates.h"
#include "muster/files/file_systems.h"
#include "muster/io/private_file_system.h"
#include "muster/net/listen.h"
#include "muster/net/tls/certs.h"

namespace muster::launch::slots {
namespace {

// TLS with the job's own certificates, and a port that agents find by the URL's file.
const control::ListenPlace kEverywhere = {.address = "0.0.0.0", .port = 0, .tls = true};

constexpr int kCertificateDays = 365;
constexpr char kCertificateName[] = "muster";
constexpr char kAuthority[] = "ca";  // ca.pem and ca-key.pem in a job's folder

// The last coordinator's port again: its agents ask there.
absl::StatusOr<control::ListenPlace> GetPlace(const Json& state) {
  MUSTER_ASSIGN_OR_RETURN(control::ListenPlace place, control::GetListenPlace(state));
  if (place.port == 0) place.port = control::GetLastPort(state);
  return place;
}

absl::Status WriteFirst(io::FileSystem& files, const std::string& path, const job::JobSpec& spec,
                        const control::CoordinatorOptions& options,
                        const control::ListenPlace& listen) {
  MUSTER_ASSIGN_OR_RETURN(const auto journal, control::Journal::Open(files, path));
  MUSTER_ASSIGN_OR_RETURN(const auto coordinator,
                          control::Coordinator::New(spec, options, {.journal = journal.get()}));
  control::SetListenNotes(listen, coordinator.get());
  return coordinator->Write();
}

absl::Status Fill(const control::JobFolder& folder, const job::JobSpec& spec,
                  const control::CoordinatorOptions& options, const SlotJobOptions& slots) {
  MUSTER_RETURN_IF_ERROR(control::MakeKeys(folder));
  if (slots.listen.tls) {
    MUSTER_RETURN_IF_ERROR(control::UseCertificates(slots.certificates, slots.listen, folder));
  }
  if (slots.certifies) {
    MUSTER_ASSIGN_OR_RETURN(const net::Credentials authority,
                            net::ReadCredentials(slots.certificates, kAuthority));
    MUSTER_RETURN_IF_ERROR(net::WriteCredentials(folder.path, kAuthority, authority));
  }
  return WriteFirst(*io::NewPrivateFileSystem(), folder.journal(), spec, options, slots.listen);
}

// A coordinator's own certificate, for the place where it runs now.
absl::Status MakeServerCertificate(const net::Credentials& authority, const std::string& host,
                                   const control::JobFolder& folder) {
  std::vector<std::string> hosts = {"127.0.0.1", "::1"};
  if (host != hosts[0] && host != hosts[1]) hosts.push_back(host);
  MUSTER_ASSIGN_OR_RETURN(const net::Credentials made,
                          net::MakeCertificate(authority, {.name = kCertificateName,
                                                           .use = net::CertificateUse::kServer,
                                                           .hosts = std::move(hosts),
                                                           .days = kCertificateDays}));
  return net::WriteCredentials(folder.path, "server", made);
}

// By which a coordinator that has the authority's key certifies the keys of agents.
absl::StatusOr<std::vector<control::ServiceRoute>> GetCertificateRoutes(
    const control::JobFolder& folder) {
  MUSTER_ASSIGN_OR_RETURN(net::Credentials authority,
                          net::ReadCredentials(folder.path, kAuthority));
  std::vector<control::ServiceRoute> routes;
  routes.push_back(control::MakeCertificateRoute(std::move(authority), kCertificateName));
  return routes;
}

}  // namespace

absl::Status CreateSlotJob(const control::JobFolder& folder, const job::JobSpec& spec,
                           const control::CoordinatorOptions& options,
                           const SlotJobOptions& slots) {
  MUSTER_RETURN_IF_ERROR(control::Coordinator::New(spec, options, {}).status());
  if (mkdir(folder.path.c_str(), 0700) != 0) {
    return ErrnoStatus(errno, StrCat("cannot make the job's folder ", folder.path));
  }
  const absl::Status filled = Fill(folder, spec, options, slots);
  if (!filled.ok()) (void)io::NewPrivateFileSystem()->RemoveAll(folder.path);  // the first counts
  return filled;
}

absl::Status WriteFirstState(io::FileSystem& files, const std::string& state,
                             const job::JobSpec& spec, const control::CoordinatorOptions& options) {
  return WriteFirst(files, GetSharedState(state, 0).journal, spec, options, kEverywhere);
}

absl::Status SlotJob::Start(const control::JobFolder& folder, const SharedState& state,
                            const control::ListenPlace& place,
                            std::vector<control::ServiceRoute> routes) {
  formats::JsonFields fields(journal_->state(), state.journal);
  const double lease = formats::JsonFields(fields.Object("options"), "options")
                           .Number("lease_seconds", control::CoordinatorOptions().lease_seconds);
  const int64_t next_incarnation = formats::JsonFields(fields.Object("status"), "status")
                                       .Int("next_incarnation", 1, 1, INT64_MAX);
  MUSTER_ASSIGN_OR_RETURN(launcher_, SlotLauncher::Create({.files = files_.get(),
                                                           .clock = &clock_,
                                                           .record_path = state.record,
                                                           .started_up_to = next_incarnation - 1,
                                                           .journal_path = state.journal,
                                                           .lease_seconds = lease}));
  routes.push_back(launcher_->Route());
  MUSTER_ASSIGN_OR_RETURN(service_,
                          control::Service::Listen(folder, place, {.routes = std::move(routes)}));
  return control::RunCoordinator(
      {.journal = journal_.get(), .launcher = launcher_.get(), .clock = &clock_}, service_.get());
}

absl::StatusOr<std::unique_ptr<SlotJob>> SlotJob::Run(const control::JobFolder& folder) {
  MUSTER_ASSIGN_OR_RETURN(auto lock, control::JobLock::Take(folder.lock()));
  std::unique_ptr<SlotJob> job(new SlotJob(std::move(lock), io::NewPrivateFileSystem()));
  MUSTER_ASSIGN_OR_RETURN(job->journal_, control::Journal::Open(*job->files_, folder.journal()));
  MUSTER_ASSIGN_OR_RETURN(const control::ListenPlace place, GetPlace(job->journal_->state()));
  std::vector<control::ServiceRoute> routes;
  if (job->files_->Stat(folder.path + "/ca-key.pem").ok()) {
    MUSTER_ASSIGN_OR_RETURN(routes, GetCertificateRoutes(folder));
  }
  MUSTER_RETURN_IF_ERROR(
      job->Start(folder, {.journal = folder.journal(), .record = folder.path + "/slots.json"},
                 place, std::move(routes)));
  return job;
}

absl::StatusOr<std::unique_ptr<SlotJob>> SlotJob::RunMoving(const control::JobFolder& folder,
                                                            const MovingJobOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(auto lock, control::JobLock::Take(folder.lock()));
  std::unique_ptr<SlotJob> job(new SlotJob(std::move(lock), files::OpenFileSystems()));
  MUSTER_ASSIGN_OR_RETURN(const SharedState state,
                          ClaimSharedState(*job->files_, options.state, options.attempt));
  MUSTER_ASSIGN_OR_RETURN(job->journal_, control::Journal::Open(*job->files_, state.journal));
  MUSTER_ASSIGN_OR_RETURN(const net::Credentials authority,
                          net::ReadCredentials(folder.path, kAuthority));
  MUSTER_RETURN_IF_ERROR(MakeServerCertificate(authority, options.host, folder));
  MUSTER_ASSIGN_OR_RETURN(auto routes, GetCertificateRoutes(folder));
  MUSTER_RETURN_IF_ERROR(job->Start(folder, state, kEverywhere, std::move(routes)));
  job->url_file_ = options.url_file;
  job->url_ = StrCat("https://", net::internal::HostPort(
                                     options.host, static_cast<uint16_t>(job->service_->port())));
  job->watch_ = std::make_unique<StateWatch>(
      StateWatchOptions{.journal = state.journal,
                        .patience_seconds = options.state_patience_seconds},
      *job->files_, job->clock_);
  return job;
}

absl::Status SlotJob::PublishUrl() {
  if (url_file_.empty()) return absl::OkStatus();
  return io::WriteFileAtomically(*files_, url_file_, url_ + "\n");
}

void SlotJob::SetFinal() {
  const Json job = service_->Describe();
  const std::string phase = formats::JsonFields(job, "job").Text("phase");
  service_->Within([&] { launcher_->SetFinal(phase); });
}

bool SlotJob::emptied() {
  bool emptied = false;
  service_->Within([&] { emptied = launcher_->emptied(); });
  return emptied;
}

SlotJob::~SlotJob() {
  if (service_ != nullptr) service_->Stop();
}

}  // namespace muster::launch::slots
