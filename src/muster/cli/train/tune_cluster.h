// Trials of `muster tune --on kubernetes|yarn`: each is a training that is a job of a cluster, as
// `muster train --on` makes it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "muster/cli/train/cluster_train.h"
#include "muster/tune/runner.h"
#include "muster/tune/search_file.h"

namespace muster::cli {

inline constexpr char kSparkKind[] = "spark";  // tune_spark.h

struct ClusterTrialFlags {
  ClusterTrainFlags train;
  std::string workers;  // as --workers of muster train; "": one replica
  int ps = 0;
  std::string model_dir;  // the folder of the trials' model folders, by a path of the tasks
  std::vector<std::string> runner = {};  // of Spark alone: the words before a trial's command
  // The same flags as words, without --model-dir and `runner`; of Spark those that a training on
  // this machine has, too.
  std::vector<std::string> words = {};

  bool is_on_spark() const { return train.where.on == kSparkKind; }
  bool has_tasks() const { return ps > 0 || (!workers.empty() && workers != "1"); }
  // The replicas that train a model together. Wrong `workers` count as one.
  int CountReplicas() const;
};

// Adds --on and what goes with it, --workers, --ps and --model-dir.
void AddClusterTrialFlags(CLI::App& verb, ClusterTrialFlags* flags);
// Fills `words`, from the flags that were given. Wrong use of them throws.
void ReadClusterTrialFlags(const CLI::App& verb, ClusterTrialFlags* flags);

struct ClusterTrials {
  io::FileSystem& files;
  const tune::SearchFile& search;
  const ClusterTrialFlags& flags;
  std::string program;     // muster itself
  std::string study_id;    // StudyFolder::GetId()
  std::string log_folder;  // of the study; it exists
  const std::atomic<bool>& stop;
};

// Makes the words after `muster train` those of a training on the cluster.
void AddClusterWords(const ClusterTrialFlags& flags, std::vector<std::string>* words);

// A trial's model folder, by a path of the tasks.
std::string GetClusterFolder(const ClusterTrials& trials, int64_t trial);

// Checks with a point of the space what a trial's job needs, also on Spark. It submits nothing.
absl::Status CheckClusterTrials(const tune::SearchFile& search, const ClusterTrialFlags& flags);

// Stops and removes the jobs that a killed process has left of trials whose result is in the study:
// nothing follows these trials again. It waits for each job's end for at most a minute; what could
// not be removed is said in the trial's output.
void RemoveLeftJobs(const ClusterTrials& trials, const tune::History& history);

// A trial's job that is there already, of a process that was killed, is followed and not submitted
// again. When this process is told to end, the jobs continue. A job that has succeeded, or that the
// study has stopped, is removed; one that has failed stays. What `trials` refers to must outlive
// the objective.
std::unique_ptr<tune::Objective> NewClusterObjective(ClusterTrials trials);

}  // namespace muster::cli
