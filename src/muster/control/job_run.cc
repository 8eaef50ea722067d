#include "muster/control/job_run.h"

#include <cstdlib>
#include <utility>

#include "muster/formats/json_fields.h"
#include "muster/net/token.h"
#include "muster/process/proc.h"

namespace muster::control {
namespace {

// Identifies the scope of this machine's monotonic clock.
std::string GetBootId() {
  return process::ReadSmallFile("/proc/sys/kernel/random/boot_id").value_or("unknown");
}

}  // namespace

std::string GetNote(const Json& state, const char* name) {
  formats::JsonFields fields(state, "journal");
  return formats::JsonFields(fields.Object("notes"), "journal: notes").Text(name);
}

int GetLastPort(const Json& state) {
  const std::string url = GetNote(state, kUrlNote);
  const size_t colon = url.rfind(':');
  return colon == std::string::npos ? 0 : std::atoi(url.c_str() + colon + 1);
}

absl::StatusOr<ListenPlace> GetListenPlace(const Json& state) {
  const std::string told = GetNote(state, kListenNote);
  if (told.empty()) return ListenPlace();
  return ParseListenPlace(told, GetNote(state, kTlsNote) == "yes");
}

void SetListenNotes(const ListenPlace& place, Coordinator* coordinator) {
  coordinator->SetNote(kListenNote, PrintListenPlace(place));
  coordinator->SetNote(kTlsNote, place.tls ? "yes" : "no");
}

absl::Status MakeKeys(const JobFolder& folder) {
  MUSTER_RETURN_IF_ERROR(net::MakeTokenFile(folder.token()).status());
  return net::MakeTokenFile(folder.data_key()).status();
}

absl::Status RunCoordinator(const ResumedJob& job, Service* service) {
  MUSTER_ASSIGN_OR_RETURN(auto coordinator, Coordinator::Resume({.journal = job.journal,
                                                                 .launcher = job.launcher,
                                                                 .clock = job.clock,
                                                                 .clock_id = GetBootId()}));
  if (!job.cancelled.empty()) coordinator->Cancel(job.cancelled);
  coordinator->SetNote(kUrlNote, service->url());
  // Here, so that a journal that cannot be written is this call's error.
  MUSTER_RETURN_IF_ERROR(coordinator->Pass().status());
  service->Run(std::move(coordinator));
  return absl::OkStatus();
}

}  // namespace muster::control
