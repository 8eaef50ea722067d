// The flags of a job on the command line: a TFJob file, or roles and a command.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "CLI/App.hpp"

namespace muster::cli {

struct JobFlags {
  std::string file;  // a TFJob
  // The words after "--": the command of all tasks or, with a file, the replacement for the image's
  // entry point.
  std::vector<std::string> command;
  bool chief = false, evaluator = false;
  int workers = -1, ps = 0;  // -1: 1, or 0 with a chief
  std::string name;
  // What the name is derived from if neither it nor a command is given.
  std::vector<std::string> typed;
  std::string restart_policy;   // "": OnFailure
  std::optional<int> restarts;  // nullopt: 3
  std::string restart_scope;    // "": gang without ps, task with
  std::string expect;
  std::string model_dir;
  // "": as the file says; else 60s for finish_timeout
  std::string progress_timeout, finish_timeout;
  double lease_seconds = 10, grace_seconds = 10;
  double rendezvous_seconds = -1;  // for agents and native tasks; 0: unlimited; < 0: not given
  bool evaluator_in_cluster = false, master_as_chief = false;
  std::vector<std::string> volumes;          // NAME=PATH
  std::vector<std::string> paths;            // FOLDER=PATH: a folder of the image and its path here
  int gpus = -1;                             // of each task; -1: as the templates say
  std::vector<std::string> env;              // NAME=VALUE
  std::vector<std::string> files, archives;  // to be staged, in addition to those of the job file
  std::string hosts, ssh = "ssh";            // other machines that run the tasks; "": this one
  std::string listen;                        // "": 127.0.0.1, or an address that the hosts reach
  std::string certificates;                  // a folder; "": no TLS
  bool share_gpus = false, isolate = false;  // as in LocalJobOptions
  int metrics_port = 0;                      // as in LocalJobOptions
  std::string place;  // whose machines run the tasks, for messages; "": this machine, or the hosts
};

void AddJobFlags(CLI::App& verb, JobFlags* flags);
// Adds --hosts and --ssh.
void AddHostFlags(CLI::App& verb, std::string* hosts, std::string* ssh);

}  // namespace muster::cli
