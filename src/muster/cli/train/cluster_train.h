// `muster train --on kubernetes` and `--on yarn`: the training as a TFJob whose pods or containers
// run `muster worker`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "muster/cli/jobs/where_flags.h"
#include "muster/cli/jobs/yarn_flags.h"
#include "muster/cli/train/train_run.h"
#include "muster/formats/yaml_reader.h"
#include "muster/job/job_spec.h"

namespace muster::cli {

struct ClusterTrainFlags {
  WhereFlags where;
  YarnFlags yarn;
  std::string pod_template;
  std::vector<std::string> volumes;   // CLAIM:/PATH
  std::vector<std::string> archives;  // PATH#NAME
  bool detach = false;
};

void AddClusterTrainFlags(CLI::App& verb, ClusterTrainFlags* flags);

// A training as the job of a cluster that it becomes.
struct ClusterTraining {
  job::JobSpec spec = {};
  YarnFlags yarn = {};  // of YARN, with the files that travel with the job
  // Of Kubernetes: where --pod-template stands in its file.
  std::optional<formats::YamlReader> pod_template = {};
};
// Checks the training and what it needs of the cluster, and submits nothing. `arguments` are those
// of `muster train`. What is found wrong in them is wrong use.
absl::StatusOr<ClusterTraining> PlanTraining(const TrainFlags& flags,
                                             const ClusterTrainFlags& cluster,
                                             const std::vector<std::string>& arguments);

// Submits the job and shows what its tasks write until it has ended. `arguments` are those of the
// command. What is found wrong in them is wrong use.
absl::Status TrainOnCluster(const TrainFlags& flags, const ClusterTrainFlags& cluster,
                            const std::vector<std::string>& arguments);

}  // namespace muster::cli
