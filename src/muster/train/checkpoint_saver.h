// CheckpointSaver: the hook that saves weights, slots, step and data position.
#pragma once

#include <memory>
#include <vector>

#include "muster/train/hook.h"

namespace muster::train {

// The name under which a checkpoint carries the data position; of N replicas: NAME/0 ... NAME/N-1.
constexpr const char* kPositionName = "muster/position";
constexpr const char* kRecordsName = "muster/records";

// Saves in the background (checkpoint/async_saver.h) and goes on, unless a listener wants to wait
// for that save; at the end it waits for the disk. A failure in the background ends the training
// after the next step. A save by steps waits for one still in flight, a save by time is put off.
//
// While it saves in the background, changes of weights must be announced (Variables::BeforeChange).
// A second AfterCreateSession waits for the save in flight.
//
// Saves before the first step unless the newest checkpoint is of that step, every
// save_checkpoints_steps or save_checkpoints_secs, and at the end if the step changed; calls the
// listeners in order, of which each that returns true asks to stop.
std::unique_ptr<Hook> NewCheckpointSaver(
    const RunConfig& config, std::vector<std::shared_ptr<CheckpointListener>> listeners);

// Fills weights, slots and step of `session` from the newest checkpoint of its model_dir and notes
// it as saved; OK and untouched when there is none. Notes where it passed over broken ones.
absl::Status RestoreSession(Session& session);

}  // namespace muster::train
