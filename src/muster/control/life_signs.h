// LifeSigns: finds when a task last gave a sign of life: output, a new step in its step file, or a
// change in the model folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace muster::control {

using Counts = std::map<std::string, int64_t>;

// The state of a folder and all below it except Muster's leases, which are renewed whether or not
// their holder makes progress. Two states are equal if names, sizes and modification times are.
struct FolderState {
  uint64_t all = 0;          // 0: the folder is not there
  uint64_t checkpoints = 0;  // of checkpoint files alone: TensorFlow's and Keras's
  friend bool operator==(const FolderState&, const FolderState&) = default;
};
// Looks at a folder of this machine (a mounted one included), not at a path with a scheme. It does
// not follow links, passes over what it may not read, and stops after 20,000 entries in the order
// of the file system: changes of further files are not seen. The first failure to read an entry
// ends the scan. Any thread; it takes a stat() of each file, and waits if the disk does.
FolderState GetFolderState(const std::string& folder);

struct LifeSignsOptions {
  std::string step_file = {};  // the task may write its step number there
  std::string model_dir = {};  // with all below it; "": not watched
  // Interval between two scans of the model folder; a scan costs a stat() of each of its files.
  double look_seconds = 1;
};

// New text in a file, or a new set of names, sizes and modification times in a folder, is a change;
// files and folders that cannot be read count as unchanged. One owner thread.
class LifeSigns {
 public:
  // What exists at construction does not count as a sign of life.
  LifeSigns(LifeSignsOptions options, int64_t now_nanos);

  // Checks for signs of life; times are Clock's MonotonicNanos. `last`: also scans the model
  // folder, however recent its last scan is.
  void Look(int64_t now_nanos, int64_t last_output_nanos, bool last = false);
  // Counts the time up to now as a sign of life, because the task could not give one.
  void Forgive(int64_t now_nanos) { alive_at_ = looked_at_ = now_nanos; }
  // Seconds from the last sign of life to the last Look().
  double idle_seconds() const { return static_cast<double>(looked_at_ - alive_at_) * 1e-9; }
  // The number at the beginning of the step file, if there is one.
  std::optional<int64_t> step() const { return step_; }
  // The NAME=NUMBER words that follow it: "17 trained=544 dropped=0".
  const Counts& counts() const { return counts_; }
  // Whether a checkpoint appeared in the model folder, other than one of step 0 (the Estimator's
  // first).
  bool saved() const { return saved_; }

 private:
  void LookAtStep();
  void LookAtModel(bool last);

  const LifeSignsOptions options_;
  int64_t looked_at_;
  int64_t alive_at_;
  int64_t model_looked_at_;
  std::string step_text_;
  std::optional<int64_t> step_;
  Counts counts_;
  FolderState model_state_;
  bool saved_ = false;
};

}  // namespace muster::control
