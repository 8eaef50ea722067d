// CheckpointWatch: detects that checkpoints vanish from a task's model folder, as happens when a
// program removes its model folder at startup: such a task, once restarted, trains again what had
// been saved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace muster::control {

// One owner thread.
class CheckpointWatch {
 public:
  // To be made before the task starts. `model_dir` need not exist; "" is never read.
  explicit CheckpointWatch(std::string model_dir);

  // Reads the folder. A folder that cannot be read counts as unchanged; a missing one counts as a
  // loss.
  void Look();
  // The step of the newest checkpoint at the beginning, set once that checkpoint has vanished and
  // no later one exists. It stays set.
  std::optional<int64_t> lost_step() const { return lost_step_; }

 private:
  const std::string model_dir_;
  int64_t first_step_ = -1;  // < 0: there is nothing to lose (any more)
  std::optional<int64_t> lost_step_;
};

}  // namespace muster::control
