// A job whose tasks run on hosts that ssh reaches: its folder and its coordinator are on this
// machine, the agents there (ssh_launcher.h). See docs/hosts.md.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/launch/local/local_job.h"
#include "muster/launch/ssh/hosts.h"

namespace muster::launch::ssh {

struct HostsOptions {
  std::vector<std::string> names = {};         // of the hosts; empty: the tasks run on this machine
  std::vector<std::string> command = {"ssh"};  // how to reach them
  std::string listen = {};   // as of `muster run --listen`; "": the one by which hosts reach us
  std::string version = {};  // of this muster, as --version prints it
};

// Like local::CreateJob. With hosts, it first asks each of them: FAILED_PRECONDITION has a line for
// each host that cannot be reached or lacks something, with what to do.
absl::StatusOr<control::JobFolder> CreateJob(const std::string& jobs, const job::JobSpec& spec,
                                             const control::CoordinatorOptions& options,
                                             local::LocalJobOptions local,
                                             const HostsOptions& hosts);

// Like local::LocalJob::Run, for jobs on hosts and for jobs on this machine.
absl::StatusOr<std::unique_ptr<local::LocalJob>> RunJob(const control::JobFolder& folder,
                                                        const std::string& program,
                                                        const std::string& cancelled = "");

// Whether the job's tasks run on other machines.
bool HasHosts(const control::JobFolder& folder);

// Chooses the place at which the coordinator listens so that these hosts reach it. `all` has the
// addresses that each host reported of its connection; a host that is this machine itself (a
// loopback address) gets the address by which the others reach this machine.
control::ListenPlace PlaceFor(std::vector<Host>* all);

}  // namespace muster::launch::ssh
