#include "muster/launch/slots/slot_job.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "muster/control/job_run.h"

namespace muster::launch::slots {
namespace {

// The last coordinator's port again: its agents ask there.
absl::StatusOr<control::ListenPlace> GetPlace(const Json& state) {
  MUSTER_ASSIGN_OR_RETURN(control::ListenPlace place, control::GetListenPlace(state));
  if (place.port == 0) place.port = control::GetLastPort(state);
  return place;
}

absl::Status Fill(const control::JobFolder& folder, const job::JobSpec& spec,
                  const control::CoordinatorOptions& options, const SlotJobOptions& slots) {
  MUSTER_RETURN_IF_ERROR(control::MakeKeys(folder));
  if (slots.listen.tls) {
    MUSTER_RETURN_IF_ERROR(control::UseCertificates(slots.certificates, slots.listen, folder));
  }
  const auto files = io::NewPrivateFileSystem();
  MUSTER_ASSIGN_OR_RETURN(const auto journal, control::Journal::Open(*files, folder.journal()));
  MUSTER_ASSIGN_OR_RETURN(const auto coordinator,
                          control::Coordinator::New(spec, options, {.journal = journal.get()}));
  control::SetListenNotes(slots.listen, coordinator.get());
  return coordinator->Write();
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

absl::StatusOr<std::unique_ptr<SlotJob>> SlotJob::Run(const control::JobFolder& folder) {
  MUSTER_ASSIGN_OR_RETURN(auto lock, control::JobLock::Take(folder.lock()));
  std::unique_ptr<SlotJob> job(new SlotJob(std::move(lock)));
  MUSTER_ASSIGN_OR_RETURN(job->journal_, control::Journal::Open(*job->files_, folder.journal()));
  MUSTER_ASSIGN_OR_RETURN(const control::ListenPlace place, GetPlace(job->journal_->state()));
  formats::JsonFields state(job->journal_->state(), folder.journal());
  const double lease = formats::JsonFields(state.Object("options"), "options")
                           .Number("lease_seconds", control::CoordinatorOptions().lease_seconds);
  MUSTER_ASSIGN_OR_RETURN(job->launcher_,
                          SlotLauncher::Create({.files = job->files_.get(),
                                                .clock = &job->clock_,
                                                .record_path = folder.path + "/slots.json",
                                                .lease_seconds = lease}));
  MUSTER_ASSIGN_OR_RETURN(job->service_, control::Service::Listen(
                                             folder, place, {.routes = {job->launcher_->Route()}}));
  MUSTER_RETURN_IF_ERROR(control::RunCoordinator(
      {.journal = job->journal_.get(), .launcher = job->launcher_.get(), .clock = &job->clock_},
      job->service_.get()));
  return job;
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
