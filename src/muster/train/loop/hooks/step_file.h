// StepFile: reports the progress of the training to the launcher of this task: the step and, in the
// chief, the record counts (docs/run.md, MUSTER_STEP_FILE).
#pragma once

#include <memory>
#include <string>

#include "muster/train/loop/hook.h"

namespace muster::train {

// A hook that writes "STEP" or "STEP trained=N dropped=N repeated=N" into the local file at `path`,
// about once a second and at the end. The hook never fails: if the file cannot be written, the
// launcher works without it.
std::unique_ptr<Hook> NewStepFile(const std::string& path);

}  // namespace muster::train
