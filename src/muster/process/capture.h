// A small helper program run to its end, and what it said.
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

// Starts the spec's program, through `tree` where this process has one (else null; its stdout and
// stderr are set here), reads what it says, and kills it and its group when the deadline comes.
// Errors are those of Child::Start.
absl::StatusOr<CapturedRun> RunCaptured(ProcessTree* tree, ChildSpec spec, double timeout_seconds,
                                        size_t max_bytes);

}  // namespace muster::process
