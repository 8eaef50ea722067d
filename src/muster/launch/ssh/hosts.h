// The hosts of a job whose tasks run on other machines, as `muster run --hosts a,b` names them, and
// what was found out about them when the job was made. They are kept in the job's folder:
//
//   hosts.json      the ssh command and, for each host, its name, address and the like
//   hosts/N/        what an agent on the N-th host gets: ca.pem, server.pem, client.pem, their keys
//   started.json    where each task was started last (started_tasks.h)
//   staged.tar      files and archives of the job, unpacked in each task's own folder
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/control/job_folder.h"
#include "muster/formats/json_fields.h"

namespace muster::launch::ssh {

struct Host {
  std::string name = {};         // as ssh knows it
  std::string address = {};      // numeric; by it other tasks reach the tasks of this host
  std::string coordinator = {};  // numeric; by it this host reaches the coordinator
  std::string muster = {};       // the path of this version's binary there; "": it has none
  friend bool operator==(const Host&, const Host&) = default;
};

struct Hosts {
  std::vector<std::string> ssh = {"ssh"};  // the command, before the host's name
  std::vector<Host> all = {};
  friend bool operator==(const Hosts&, const Hosts&) = default;
};

// "a,b,me@c" as names. INVALID_ARGUMENT for no host, a name that is given twice or that ssh would
// take for an option.
absl::StatusOr<std::vector<std::string>> ParseHostNames(std::string_view text);

// "ssh -p 2222 -i key" as words; quotes have no special meaning. INVALID_ARGUMENT for no word.
absl::StatusOr<std::vector<std::string>> ParseSshCommand(std::string_view text);

// Where the files above are. These functions look at no file.
std::string HostsPath(const control::JobFolder& folder);
// `number` counts Hosts::all from 0.
std::string HostFolder(const control::JobFolder& folder, size_t number);
std::string StagedArchive(const control::JobFolder& folder);

// Writes hosts.json, readable by its owner alone, as a whole and durably; errors are those of
// io::WriteFileAtomically. It is called once, by the process that makes the job. The folder hosts/
// is not made here.
absl::Status WriteHosts(const control::JobFolder& folder, const Hosts& hosts);
// Reads hosts.json. NOT_FOUND for a job of this machine alone; INVALID_ARGUMENT for a file of
// another form or without a host. Any process.
absl::StatusOr<Hosts> ReadHosts(const control::JobFolder& folder);

}  // namespace muster::launch::ssh
