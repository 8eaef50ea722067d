// StepFile: tells the launcher of this task how far the training is: its step, and of the chief
// what became of the records (docs/run.md, MUSTER_STEP_FILE).
#pragma once

#include <memory>
#include <string>

#include "muster/train/hook.h"

namespace muster::train {

// A hook that writes "STEP" or "STEP trained=N dropped=N repeated=N" into the file at `path`, of
// this machine, about once a second and at the end. It cannot fail: a launcher that is not told
// does without.
std::unique_ptr<Hook> NewStepFile(const std::string& path);

}  // namespace muster::train
