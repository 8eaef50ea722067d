// Submission: a job becomes an application of a YARN cluster, whose ApplicationMaster is
// java/yarn's, with everything that its containers need in a staging folder on HDFS.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/control/coordinator.h"
#include "muster/control/job_folder.h"
#include "muster/control/place_record.h"
#include "muster/job/job_spec.h"
#include "muster/launch/yarn/yarn_client.h"
#include "muster/launch/yarn/yarn_config.h"

namespace muster::launch::yarn {

// The kind of its place records.
inline constexpr char kYarnKind[] = "yarn";

struct SubmitOptions {
  std::string queue = {};  // "": the cluster's default for the user
  // By the type of task, such as "worker"; of "", for all others and, of labels, for the
  // ApplicationMaster.
  std::map<std::string, std::string> labels =
      {};  // of nodes: expressions; none: the queue's default
  std::map<std::string, std::string> images = {};  // of Docker; none: the nodes' own system
  std::string placement = {};                      // "": any; "spread" or "together"
  std::string keytab = {};  // a file, by which the job gets tickets; "": delegation tokens alone
  int64_t memory_bytes = int64_t{2} << 30;  // of a task whose template limits none
  double cores = 1;                         // the same
  double gang_seconds = 300;                // as in control::CoordinatorOptions
  std::string program = {};                 // this muster, which the containers run
  // Folders and files of this machine, with the paths that they have in each task's folder.
  std::vector<std::pair<std::string, std::string>> folders = {};
  std::string from = {};  // the folder that paths of files and archives begin in
};

// Submits the job. `folder` is its folder on this machine, which gets what is needed to reach its
// coordinator; the caller writes the record there. The result is returned once the ResourceManager
// has accepted the application. After an error neither an application nor a staging folder is left.
// INVALID_ARGUMENT: the cluster has no such queue, or cannot give a container as large as wanted.
absl::StatusOr<control::PlaceRecord> SubmitJob(const job::JobSpec& spec,
                                               control::CoordinatorOptions options,
                                               const SubmitOptions& submit,
                                               const YarnConfig& config,
                                               const control::JobFolder& folder);

// The record of an application that another machine has submitted. `folder` gets what SubmitJob()
// puts there. NOT_FOUND if its staging folder was removed.
absl::StatusOr<control::PlaceRecord> FetchRecord(const std::string& id, const YarnConfig& config,
                                                 const YarnClient& client,
                                                 const control::JobFolder& folder);

}  // namespace muster::launch::yarn
