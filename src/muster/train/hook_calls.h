// HookCalls: hooks and listeners that whoever started this program keeps, as muster.estimator keeps
// a Python program's. Each call is an object a line on an output, and waits for its answer, an
// object a line on a file descriptor. Source: docs/formats/hook_calls.md.
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
#include "muster/train/hook.h"

namespace muster::train {

// One owner thread.
class HookCalls {
 public:
  // `wanted`: "train.after_run", "save.before" and so on; other calls are not made. `out` and the
  // descriptor `answers` must outlive it and are not closed. INVALID_ARGUMENT for a name that is no
  // call, and for a descriptor that is not open.
  static absl::StatusOr<std::shared_ptr<HookCalls>> Create(const std::vector<std::string>& wanted,
                                                           std::FILE* out, int answers);

  bool Wants(std::string_view call) const { return wanted_.contains(call); }

  // True: the answer asks to stop. False at once for what is not wanted. Waits for the answer as
  // long as there is someone who could give it; when there is nobody any more it is true, and so is
  // every later one. An error that the answer tells of becomes FAILED_PRECONDITION.
  absl::StatusOr<bool> Call(std::string_view call, int64_t step,
                            const StepValues* values = nullptr);

 private:
  HookCalls(std::set<std::string, std::less<>> wanted, std::FILE* out, int answers)
      : wanted_(std::move(wanted)), out_(out), answers_(answers) {}

  absl::StatusOr<bool> Answer();
  // Without its newline; false at the end of the answers.
  absl::StatusOr<bool> ReadLine(std::string* line);

  const std::set<std::string, std::less<>> wanted_;
  std::FILE* const out_;
  const int answers_;
  std::string unread_;
  bool alone_ = false;
};

// Makes the calls of MODE; null where none of them is wanted. In a training "create" comes with the
// first step, behind the checkpoint of the start, as in tf.estimator.
std::shared_ptr<Hook> NewCalledHook(std::shared_ptr<HookCalls> calls, ModeKeys mode);
// Makes the calls of "save"; null where none of them is wanted. Saves wait for "save.after".
std::shared_ptr<CheckpointListener> NewCalledListener(std::shared_ptr<HookCalls> calls);

}  // namespace muster::train
