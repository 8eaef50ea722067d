// What launchers' jobs share: the files that a job's folder begins with, the journal's notes of
// where its coordinator listens, and the start of a coordinator in this process.
#pragma once

#include <string>

#include "muster/base/clock.h"
#include "muster/control/coordinator.h"
#include "muster/control/job_folder.h"
#include "muster/control/service.h"

namespace muster::control {

// Notes of the journal: where programs of this machine reach the coordinator; where it was told to
// listen, and whether with TLS ("yes" or "no").
inline constexpr char kUrlNote[] = "url", kListenNote[] = "listen", kTlsNote[] = "tls";

// "" if the journal's state has no such note.
std::string GetNote(const Json& state, const char* name);
// The port of the last coordinator, which agents that live still talk to; 0: none.
int GetLastPort(const Json& state);
// As the job was told; a place of its own for a job that was not told. Its port is 0 where it may
// be any. INVALID_ARGUMENT for a note of another form.
absl::StatusOr<ListenPlace> GetListenPlace(const Json& state);
void SetListenNotes(const ListenPlace& place, Coordinator* coordinator);

// The job's token and data key, in an empty folder.
absl::Status MakeKeys(const JobFolder& folder);

struct ResumedJob {  // all must outlive the service
  Journal* journal = nullptr;
  Launcher* launcher = nullptr;
  const Clock* clock = nullptr;
  std::string cancelled = {};  // why the job is to end at once; "": it continues
};
// Continues the job of the journal in `service`, whose URL is noted before anything is done.
absl::Status RunCoordinator(const ResumedJob& job, Service* service);

}  // namespace muster::control
