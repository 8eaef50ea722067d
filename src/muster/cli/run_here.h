// Jobs started from the command line.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/cli/job_flags.h"

namespace muster::cli {

// A line of ours among the tasks' output, on stderr.
void SayOfJob(const std::string& text);

// In the foreground this process is its coordinator and prints what the tasks write, to `out`,
// until the job has ended; the first Ctrl-C stops it. ABORTED: it failed, and why. Detached it
// prints the job's name and returns.
absl::Status StartJob(const JobRequest& request, const launch::local::JobAccess& access,
                      bool detach, std::FILE* out = stdout);

// Without those flags, each of which has a value: a job's own, which its tasks do not know.
std::vector<std::string> WithoutFlags(const std::vector<std::string>& arguments,
                                      const std::vector<std::string>& flags);

}  // namespace muster::cli
