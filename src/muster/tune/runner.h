// RunTrials: runs the trials of a study, several at a time.
#pragma once

#include <atomic>
#include <functional>

#include "muster/base/status.h"
#include "muster/tune/study_journal.h"

namespace muster::tune {

// Returns why the trial must stop, or "".
using AddReport = std::function<absl::StatusOr<std::string>(const Report& report)>;

// What trials do. Run is called on several threads at once.
class Objective {
 public:
  virtual ~Objective() = default;
  // Runs one trial to its end, or until a report says that it must stop. CANCELLED: this process
  // was told to end, and the trial continues when the study does. With any other error the trial
  // has failed.
  virtual absl::StatusOr<Outcome> Run(const Trial& trial, const AddReport& report) = 0;
};

// Runs trials on `parallel` threads until the study gives no more or `stop` becomes true. `ended`
// is called after each, on its thread. Returns the error of the journal, if it has one.
absl::Status RunTrials(
    StudyJournal& journal, Objective& objective, int parallel, const std::atomic<bool>& stop,
    const std::function<void(const Trial& trial, const Outcome& outcome)>& ended);

}  // namespace muster::tune
