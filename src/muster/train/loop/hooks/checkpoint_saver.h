// CheckpointSaver: the hook that saves weights, slots, step and data position.
#pragma once

#include <memory>
#include <vector>

#include "muster/train/loop/hook.h"

namespace muster::train {

// The hook saves in the background (checkpoint/async_saver.h) while training continues, unless a
// listener wants to wait for that save; at the end it waits for the disk. A failure in the
// background ends the training after the next step. A save by steps waits for a save in flight; a
// save by time is postponed until that has ended.
//
// During a save in the background, changes of weights must be announced (Variables::BeforeChange).
// A second AfterCreateSession waits for the save in flight.
//
// The hook saves before the first step unless the newest checkpoint is of that step, every
// save_checkpoints_steps or save_checkpoints_secs, at the end of each epoch if a listener wants
// that, and at the end if the step changed. It calls the listeners in order; each of them can
// request a stop by returning true.
std::unique_ptr<Hook> NewCheckpointSaver(
    const RunConfig& config, std::vector<std::shared_ptr<CheckpointListener>> listeners);

// Fills weights, slots, step, positions and record counts of `session` from the newest checkpoint
// of its model_dir and marks this step as saved. If there is no checkpoint, returns OK and changes
// nothing. Prints a warning if it skipped corrupt checkpoints.
absl::Status RestoreSession(Session& session);

// Fills the same from `origin`, a checkpoint's prefix or a folder with checkpoints, of which it
// takes the newest; the step does not count as saved, so that the first save is that of this step.
// NOT_FOUND if there is none; FAILED_PRECONDITION if its tensors have other names or shapes.
absl::Status ContinueFrom(const std::string& origin, Session& session);

}  // namespace muster::train
