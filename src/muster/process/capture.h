// Runs a small helper program to its end and captures its output.
#pragma once

#include <string>

#include "muster/process/child.h"
#include "muster/process/process_tree.h"

namespace muster::process {

struct CapturedRun {
  ExitInfo exit;
  std::string output;      // stdout and stderr, up to max_bytes
  bool timed_out = false;  // it was killed at the deadline
};

// Starts the spec's program, through `tree` if this process has one (else null), reads its output
// (stdout and stderr are set here), and kills it and its group at the deadline. Errors are those of
// Child::Start.
absl::StatusOr<CapturedRun> RunCaptured(ProcessTree* tree, ChildSpec spec, double timeout_seconds,
                                        size_t max_bytes);

}  // namespace muster::process
