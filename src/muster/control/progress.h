// When a task last gave a sign of life: output, another step in its step file, a change in the
// model folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace muster::control {

using Counts = std::map<std::string, int64_t>;

struct ProgressOptions {
  std::string step_file = {};  // the task may write its step's number there
  std::string model_dir = {};  // with all below it; "": not looked at
  // Between two looks at the model folder, which costs a stat() of each of its files.
  double look_seconds = 1;
};

// A file of another text, or another set of names, sizes and times of change in a folder, is a
// change; what cannot be read has not changed. One owner thread.
class Progress {
 public:
  // What is there now is no sign of life yet.
  Progress(ProgressOptions options, int64_t now_nanos);

  // Looks; times are Clock's MonotonicNanos.
  void Look(int64_t now_nanos, int64_t last_output_nanos);
  // As of the last look, since the last sign of life.
  double idle_seconds() const { return static_cast<double>(looked_at_ - alive_at_) * 1e-9; }
  // What the step file begins with, where that is a number.
  std::optional<int64_t> step() const { return step_; }
  // And the words NAME=NUMBER behind it, where they are such: "17 trained=544 dropped=0".
  const Counts& counts() const { return counts_; }

 private:
  void LookAtStep();
  void LookAtModel();

  const ProgressOptions options_;
  int64_t looked_at_;
  int64_t alive_at_;
  int64_t model_looked_at_;
  std::string step_text_;
  std::optional<int64_t> step_;
  Counts counts_;
  uint64_t model_state_ = 0;
};

}  // namespace muster::control
