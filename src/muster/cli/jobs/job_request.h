// JobRequest: the job that the flags of the command line ask for.
#pragma once

#include <string>
#include <vector>

#include "muster/cli/jobs/job_flags.h"
#include "muster/launch/local/local_job.h"
#include "muster/launch/ssh/hosts_job.h"

namespace muster::cli {

struct JobRequest {
  job::JobSpec spec;
  control::CoordinatorOptions options;
  launch::ssh::HostsOptions hosts = {};
  std::vector<std::string> notes;  // for the user: settings of the file that are not used here
};

// Checks the flags by themselves, before any file is read. An error means wrong use.
absl::Status CheckJobFlags(const JobFlags& flags);

// INVALID_ARGUMENT for everything that can be found wrong before anything starts; all problems of a
// kind are in one message.
absl::StatusOr<JobRequest> MakeRequest(const JobFlags& flags);

// The job that roles and a command ask for, without what is of this machine or a time limit.
absl::StatusOr<job::JobSpec> MakeCommandSpec(const JobFlags& flags);

// Returns where the job's coordinator listens, and what the job gets of this machine.
// INVALID_ARGUMENT for an address that lacks what it requires.
absl::StatusOr<launch::local::LocalJobOptions> MakeLocalOptions(const JobFlags& flags);

}  // namespace muster::cli
