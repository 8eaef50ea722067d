// Runs a small helper program to its end and captures its output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "muster/process/child.h"
#include "muster/process/process_tree.h"

namespace muster::process {

struct CapturedRun {
  ExitInfo exit;
  std::string output;      // up to max_bytes
  bool timed_out = false;  // it was killed at the deadline
};

enum class Captured : uint8_t { kStdoutAndStderr, kStdout };

// Starts the spec's program, through `tree` if this process has one (else null), reads its output
// (what is captured is set here), and kills it and its group at the deadline. Errors are those of
// Child::Start.
absl::StatusOr<CapturedRun> RunCaptured(ProcessTree* tree, ChildSpec spec, double timeout_seconds,
                                        size_t max_bytes,
                                        Captured captured = Captured::kStdoutAndStderr);

}  // namespace muster::process
