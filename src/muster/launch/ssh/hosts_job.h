// A job whose tasks run on hosts that ssh reaches: its folder and its coordinator are on this
// machine, the agents there (ssh_launcher.h). docs/hosts.md.
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
  std::string listen = {};   // as of `muster run --listen`; "": the address by which they reach us
  std::string version = {};  // of this muster, as --version prints it
};

// As local::CreateJob. With hosts, asks each of them first: FAILED_PRECONDITION says in one line
// each which cannot be reached or lacks what, and what to do.
absl::StatusOr<control::JobFolder> CreateJob(const std::string& jobs, const job::JobSpec& spec,
                                             const control::CoordinatorOptions& options,
                                             local::LocalJobOptions local,
                                             const HostsOptions& hosts);

// As local::LocalJob::Run, for jobs of hosts and of this machine.
absl::StatusOr<std::unique_ptr<local::LocalJob>> RunJob(const control::JobFolder& folder,
                                                        const std::string& program,
                                                        const std::string& cancelled = "");

// Whether the job's tasks run on other machines.
bool HasHosts(const control::JobFolder& folder);

// Where the coordinator listens so that these hosts reach it, and by which address each host and
// the tasks on the others reach it. `all` has what each host said of its connection; a host that is
// this machine itself (a loopback address) gets the address by which the others reach this machine.
control::ListenPlace PlaceFor(std::vector<Host>* all);

}  // namespace muster::launch::ssh
