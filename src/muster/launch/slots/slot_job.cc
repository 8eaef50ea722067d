#include "muster/launch/slots/slot_job.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "muster/net/token.h"
#include "muster/process/proc.h"

namespace muster::launch::slots {
namespace {

// Of the journal, as launch/local has them.
constexpr char kUrlNote[] = "url", kListenNote[] = "listen", kTlsNote[] = "tls";

std::string GetNote(const Json& state, const char* name) {
  formats::JsonFields fields(state, "journal");
  return formats::JsonFields(fields.Object("notes"), "journal: notes").Text(name);
}

// The monotonic clock counts from there.
std::string BootId() {
  return process::ReadSmallFile("/proc/sys/kernel/random/boot_id").value_or("unknown");
}

absl::StatusOr<control::ListenPlace> GetPlace(const Json& state) {
  MUSTER_ASSIGN_OR_RETURN(
      control::ListenPlace place,
      control::ParseListenPlace(GetNote(state, kListenNote), GetNote(state, kTlsNote) == "yes"));
  const std::string url =
      GetNote(state, kUrlNote);  // of the last coordinator: its agents ask there
  const size_t colon = url.rfind(':');
  if (place.port == 0 && colon != std::string::npos)
    place.port = std::atoi(url.c_str() + colon + 1);
  return place;
}

absl::Status Fill(const control::JobFolder& folder, const job::JobSpec& spec,
                  const control::CoordinatorOptions& options, const SlotJobOptions& slots) {
  MUSTER_RETURN_IF_ERROR(net::MakeTokenFile(folder.token()).status());
  MUSTER_RETURN_IF_ERROR(net::MakeTokenFile(folder.data_key()).status());
  if (slots.listen.tls) {
    MUSTER_RETURN_IF_ERROR(control::UseCertificates(slots.certificates, slots.listen, folder));
  }
  const auto files = io::NewPrivateFileSystem();
  MUSTER_ASSIGN_OR_RETURN(const auto journal, control::Journal::Open(*files, folder.journal()));
  MUSTER_ASSIGN_OR_RETURN(const auto coordinator,
                          control::Coordinator::New(spec, options, {.journal = journal.get()}));
  coordinator->SetNote(kListenNote, control::PrintListenPlace(slots.listen));
  coordinator->SetNote(kTlsNote, slots.listen.tls ? "yes" : "no");
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
