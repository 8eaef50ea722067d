// ClusterRole: the place of this process in a training of several tasks, from its environment:
// TF_CONFIG says who is in, MUSTER_KEY_FILE has the key that they show each other, MUSTER_CERTS is
// a folder of muster certs for connections between machines, or MUSTER_PLAIN_TEXT=1 asks for none;
// MUSTER_JOB and MUSTER_INCARNATION are set by muster's own launchers.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/data/source.h"
#include "muster/io/file_system.h"
#include "muster/model/model_spec.h"
#include "muster/train/run_config.h"
#include "muster/train/strategy.h"
#include "muster/train/training_watch.h"

namespace muster::train {

// Fills in the place of this process: TF_CONFIG's, the job and the incarnation.
absl::Status ReadTaskEnvironment(const Clock& clock, RunConfig* config);

struct ClusterRoleOptions {
  std::string agreement = {};  // what all must have the same (membership/view.h)
  // There is an evaluator, whom TensorFlow's TF_CONFIG shows to itself alone.
  bool evaluator = false;
  // allreduce, ps-sync or ps-async; "": ps-async where there are parameter servers, else allreduce.
  std::string strategy = {};
  // Of ps-async: how many batches one may be ahead of the slowest; < 0: no bound.
  int64_t staleness = -1;
  // Instead of what the environment says; "" and false leave it to that.
  std::string certificates = {};
  bool plain_text = false;
  // Of ps-sync: a step is made of so many replicas' gradients, the others are backups; 0: of all.
  int aggregate = 0;
  int min_replicas = 0;  // so many train without the others (all-reduce); 0: only all
  const std::atomic<bool>* stop = nullptr;  // true gives waits for others up; must outlive the role
  std::function<void(const std::string& text)> note = {};  // for people; may be empty
};

// For TrainSpec::replicas or EvalSpec::training; both null for a process by itself.
struct ClusterRole {
  std::unique_ptr<Peers> replicas = {};
  std::unique_ptr<TrainingWatch> training = {};  // the evaluator's
};

// `config` is what ReadTaskEnvironment filled in. FAILED_PRECONDITION without a key, with
// certificates that others will not believe, and for an evaluator of which the options know
// nothing; the errors of CheckStrategy and CheckProtection. `clock` must outlive it.
absl::StatusOr<ClusterRole> JoinFromEnvironment(const RunConfig& config,
                                                const ClusterRoleOptions& options,
                                                const Clock& clock);

// INVALID_ARGUMENT where tasks of other machines are to be reached (an address of TF_CONFIG that is
// no loopback one) and nothing says how that is protected, or two things do.
absl::Status CheckProtection(const RunConfig& config, const ClusterRoleOptions& options);

// The life of a task of type ps (served_cluster.h).
absl::Status RunParameterServer(const RunConfig& config, const ClusterRoleOptions& options,
                                const model::ModelSpec& model);

// INVALID_ARGUMENT unless the strategy ("": none is asked for) goes with so many parameter servers,
// and a bound on staleness (< 0: none) and a number to aggregate (0: none) with the strategy and so
// many replicas.
absl::Status CheckStrategy(const ClusterRoleOptions& options, int servers, int replicas);

// INVALID_ARGUMENT unless so few of the cluster's replicas can go on without the others: by
// all-reduce, and not more than there are.
absl::Status CheckFewest(const RunConfig& config, const ClusterRoleOptions& options);

// The part of the data that this replica reads: whole files where there are enough of them for
// all, else an equal share of the records.
absl::StatusOr<data::Shard> ShardOf(const RunConfig& config,
                                    const std::vector<std::string>& patterns,
                                    io::FileSystem& files);
// The same for data that is dealt in `parts` to replicas that may become fewer or more: the first.
absl::StatusOr<data::Shard> FirstPart(int parts, const std::vector<std::string>& patterns,
                                      io::FileSystem& files);

}  // namespace muster::train
