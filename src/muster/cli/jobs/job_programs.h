// Checks that the programs of a job's tasks exist on this machine, before anything is started.
#pragma once

#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/job/job_spec.h"

namespace muster::cli {

// The problems of a job, each once and on its own line.
class Refusals {
 public:
  void Add(const absl::Status& status);  // OK adds nothing
  absl::Status status() const;           // INVALID_ARGUMENT

 private:
  std::vector<std::string> lines_;
};

// Checks that each task's program and working folder exist, or will exist once the job is staged.
// INVALID_ARGUMENT lists all that are missing, so that a typo costs no restarts.
// `working_directory` is for tasks that name none.
absl::Status CheckPrograms(const job::JobSpec& spec, const std::string& working_directory);

}  // namespace muster::cli
