// A job's state in a folder that outlives its coordinator's machine, on any file system: journal-N
// and slots-N.json, where N is the provider attempt whose coordinator has them.
//
// A coordinator claims the state of an earlier attempt by renaming it, the journal first. From then
// on the earlier coordinator, which may still run on a machine that nobody reaches, appends to a
// name that is gone and can record nothing, and what it cannot record it does not do
// (control::Coordinator::Pass, SlotLauncherOptions::journal_path).
#pragma once

#include <cstdint>
#include <string>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::launch::slots {

struct SharedState {
  std::string journal = {};  // paths
  std::string record = {};   // of SlotLauncherOptions::record_path
};

// The paths of attempt `attempt`; that of a new job's state, which its submission writes, is 0.
SharedState GetSharedState(const std::string& folder, int64_t attempt);

// Takes the state of the latest attempt before `attempt`, or what `attempt` itself has already.
// ABORTED if a later attempt has it; NOT_FOUND if there is none in the folder.
absl::StatusOr<SharedState> ClaimSharedState(io::FileSystem& files, const std::string& folder,
                                             int64_t attempt);

// The journal of whichever attempt has the state. NOT_FOUND if there is none.
absl::StatusOr<std::string> FindSharedJournal(io::FileSystem& files, const std::string& folder);

}  // namespace muster::launch::slots
