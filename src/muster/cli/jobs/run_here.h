// Jobs started from the command line.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/cli/jobs/job_request.h"

namespace muster::cli {

// Prints a line of Muster's own among the tasks' output, on stderr.
void SayOfJob(const std::string& text);

// Removes the job if it has ended and its ttlSecondsAfterFinished has passed, and reports that.
void RemoveExpired(const control::JobFolder& folder);
// Calls RemoveExpired for every job of this machine.
void RemoveAllExpired();

// In the foreground this process is the job's coordinator, and prints what the tasks write to `out`
// until the job has ended; the first Ctrl-C stops the job. ABORTED if the job failed; the message
// says why. With `detach` it prints the job's name to `out` and returns.
absl::Status StartJob(const JobRequest& request, const launch::local::LocalJobOptions& local,
                      bool detach, std::FILE* out = stdout);

// Returns `arguments` without `flags`, each of which takes a value: flags of the job that its tasks
// do not know.
std::vector<std::string> WithoutFlags(const std::vector<std::string>& arguments,
                                      const std::vector<std::string>& flags);

}  // namespace muster::cli
