// A job from the command line: a TFJob file, or roles and a command.
#pragma once

#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "muster/launch/local/local_job.h"

namespace muster::cli {

struct JobFlags {
  std::string file;                  // a TFJob
  std::vector<std::string> command;  // or this, what stood behind "--"
  bool chief = false, evaluator = false;
  int workers = -1, ps = 0;  // -1: 1, or 0 beside a chief
  std::string name;
  // Of what a name is made when none is given, where that is not the command.
  std::vector<std::string> typed;
  std::string restart_policy = "OnFailure";
  int restarts = 3;
  std::string restart_scope;  // "": gang without ps, task with
  std::string expect;
  std::string model_dir;
  std::string progress_timeout, finish_timeout;  // "": as the file says; else 60s for the latter
  double lease_seconds = 10, grace_seconds = 10, rendezvous_seconds = 60;
  bool evaluator_in_cluster = false, master_as_chief = false;
  std::vector<std::string> volumes;          // NAME=PATH
  std::vector<std::string> env;              // NAME=VALUE
  std::vector<std::string> files, archives;  // to stage, beside those of the job file
  std::string listen = "127.0.0.1";
  std::string certificates;  // a folder; "": no TLS
};

void AddJobFlags(CLI::App& verb, JobFlags* flags);

struct JobRequest {
  job::JobSpec spec;
  control::CoordinatorOptions options;
  std::vector<std::string> notes;  // for the user: what the file says and is not used here
};

// What is wrong with the flags by themselves, before any file is read: wrong use.
absl::Status CheckJobFlags(const JobFlags& flags);

// All that can be known to be wrong before anything starts is an error: INVALID_ARGUMENT.
absl::StatusOr<JobRequest> RequestOf(const JobFlags& flags);

// Where its coordinator is to listen: INVALID_ARGUMENT for a place without what it wants.
absl::StatusOr<launch::local::JobAccess> AccessOf(const JobFlags& flags);

}  // namespace muster::cli
