// StudyEvents: a study for TensorBoard's HParams page: FOLDER has the experiment, FOLDER/trial-0007
// the parameters, values and end of trial 7. What it writes is only for display; errors are
// returned, and lose nothing else.
#pragma once

#include <string>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/io/file_system.h"
#include "muster/tune/study.h"

namespace muster::tune {

// Writes the experiment, unless FOLDER has it.
absl::Status WriteExperiment(io::FileSystem& files, const Clock& clock, const std::string& folder,
                             const StudySpec& spec);

// Writes an ended trial, in place of what is there of it.
absl::Status WriteTrialEvents(io::FileSystem& files, const Clock& clock, const std::string& folder,
                              const StudySpec& spec, const Trial& trial);

// Writes the ended trials that FOLDER does not have, because the process was killed before.
absl::Status WriteMissingTrialEvents(io::FileSystem& files, const Clock& clock,
                                     const std::string& folder, const StudySpec& spec,
                                     const History& history);

}  // namespace muster::tune
