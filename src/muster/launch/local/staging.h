// Files and archives that a job brings along (JobSpec::files, archives; docs/job.md).
//
// They are copied into the job's folder once, when the job is made, so that every task and every
// restart sees the same ones whatever happens to the originals; each task runs in a folder of its
// own with a symbolic link to each of them.
#pragma once

#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/control/job_folder.h"
#include "muster/job/job_spec.h"

namespace muster::launch::local {

struct StagedItem {
  std::string source = {};  // an absolute path
  std::string name = {};    // in the task's folder; of an archive: the folder it is unpacked into
  bool is_archive = false;
  friend bool operator==(const StagedItem&, const StagedItem&) = default;
};

// What the spec's "PATH" and "PATH#NAME" mean, seen from `folder`; without a NAME a file keeps its
// own and an archive goes without its ending. INVALID_ARGUMENT for what is no file, no archive, a
// name that is a path or given twice, and for a template with a working directory of its own,
// which staging would replace.
absl::StatusOr<std::vector<StagedItem>> PlanStaging(const job::JobSpec& spec,
                                                    const std::string& folder);

// Copies and unpacks them and makes the tasks' folders. Archives are unpacked by tar and unzip:
// FAILED_PRECONDITION says what is missing, DATA_LOSS what they said. Blocks as long as that takes.
absl::Status Stage(const std::vector<StagedItem>& items, const job::JobSpec& spec,
                   const control::JobFolder& folder);

}  // namespace muster::launch::local
