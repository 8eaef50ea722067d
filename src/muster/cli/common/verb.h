// A verb of the command line. Each verb is one file (verb_<name>.cc) with a function that adds its
// subcommand to the application (see verbs.h of its room). The subcommand's callback does the work
// and throws VerbFailed if it fails.
#pragma once

#include "absl/status/status.h"

namespace muster::cli {

constexpr int kWrongUse = 2;  // the exit code

struct VerbFailed {
  absl::Status status;
  int exit_code = 1;  // 1 failed, 2 wrong use
};

// Throws VerbFailed unless `status` is OK; used at the end of a verb's callback.
void FailUnlessOk(const absl::Status& status);
// As FailUnlessOk, but with exit code 2 for INVALID_ARGUMENT; used for checks of flags and
// arguments.
void RefuseUnlessOk(const absl::Status& status);

// The version of this program, such as "0.1.0".
const char* Version();

}  // namespace muster::cli
