// HookCalls: hooks and listeners that run in the parent process, as muster.estimator runs those of
// a Python program. Each call writes one JSON object as a line to an output and waits for the
// answer, one JSON object as a line on a file descriptor. See docs/formats/hook_calls.md.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/train/loop/hook.h"

namespace muster::train {

// One owner thread.
class HookCalls {
 public:
  // `wanted`: "train.after_run", "save.before" and so on; other calls are not made. `out` and the
  // descriptor `answers` must outlive this object and are not closed. INVALID_ARGUMENT for an
  // unknown call name, and for a descriptor that is not open.
  static absl::StatusOr<std::shared_ptr<HookCalls>> Create(const std::vector<std::string>& wanted,
                                                           std::FILE* out, int answers);

  bool Wants(std::string_view call) const { return wanted_.contains(call); }

  // Returns true if the answer asks to stop; false at once for a call that is not wanted. Waits for
  // the answer as long as the parent process can send one; when it no longer can, this call and all
  // later ones return true. An error in the answer becomes FAILED_PRECONDITION.
  absl::StatusOr<bool> Call(std::string_view call, int64_t step,
                            const StepValues* values = nullptr);

 private:
  HookCalls(std::set<std::string, std::less<>> wanted, std::FILE* out, int answers)
      : wanted_(std::move(wanted)), out_(out), answers_(answers) {}

  absl::StatusOr<bool> Answer();
  // Reads a line without its newline; false at the end of the answers.
  absl::StatusOr<bool> ReadLine(std::string* line);

  const std::set<std::string, std::less<>> wanted_;
  std::FILE* const out_;
  const int answers_;
  std::string unread_;
  bool alone_ = false;
};

// Makes the calls of `mode`; null if none of them is wanted. In a training "create" is called with
// the first step, after the initial checkpoint, as in tf.estimator.
std::shared_ptr<Hook> NewCalledHook(std::shared_ptr<HookCalls> calls, ModeKeys mode);
// Makes the calls of "save"; null if none of them is wanted. Saves wait for "save.after".
std::shared_ptr<CheckpointListener> NewCalledListener(std::shared_ptr<HookCalls> calls);

}  // namespace muster::train
