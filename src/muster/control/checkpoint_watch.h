// CheckpointWatch: detects that checkpoints vanish from a task's model folder. This happens when a
// program removes its model folder at startup; such a task, once restarted, repeats training that
// had already been saved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace muster::control {

// One owner thread.
class CheckpointWatch {
 public:
  // Construct it before the task starts. `model_dir` need not exist; "" is never read.
  explicit CheckpointWatch(std::string model_dir);

  // Reads the folder. A folder that cannot be read counts as unchanged; a missing one counts as a
  // loss.
  void Look();
  // The step of the checkpoint that was the newest at construction, set once that checkpoint has
  // vanished and no later one exists. It stays set.
  std::optional<int64_t> lost_step() const { return lost_step_; }

 private:
  const std::string model_dir_;
  int64_t first_step_ = -1;  // < 0: there is nothing to lose (any more)
  std::optional<int64_t> lost_step_;
};

}  // namespace muster::control
