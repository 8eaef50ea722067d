// Files and archives that belong to a job (JobSpec::files, archives; see docs/job.md).
//
// They are copied into the job's folder once, when the job is made, so that every task and every
// restart sees the same files whatever happens to the originals. Each task runs in its own folder
// with a symbolic link to each of them.
#pragma once

#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/control/job_folder.h"
#include "muster/job/job_spec.h"

namespace muster::launch::local {

struct StagedItem {
  std::string source = {};  // an absolute path, or hdfs://NAMENODE/PATH
  std::string name = {};    // in the task's folder; for an archive: the folder it is unpacked into
  bool is_archive = false;
  friend bool operator==(const StagedItem&, const StagedItem&) = default;
};

// Resolves the spec's "PATH" and "PATH#NAME" relative to `folder`. Without a NAME a file keeps its
// own name and an archive loses its extension. A path may be of HDFS. INVALID_ARGUMENT for a path
// that is not a file or not an archive, for a name that is a path or is given twice, and for a
// template with its own working directory, which staging would replace.
absl::StatusOr<std::vector<StagedItem>> PlanStaging(const job::JobSpec& spec,
                                                    const std::string& folder);

// Copies and unpacks the items and makes the tasks' folders. Archives are unpacked by tar and
// unzip: FAILED_PRECONDITION says which of them is missing, DATA_LOSS quotes their output. Blocks
// until done.
absl::Status Stage(const std::vector<StagedItem>& items, const job::JobSpec& spec,
                   const control::JobFolder& folder);

}  // namespace muster::launch::local
