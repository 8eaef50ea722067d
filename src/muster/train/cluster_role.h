// ClusterRole: the place of this process in a training of several tasks, from its environment.
// TF_CONFIG names the tasks. MUSTER_KEY_FILE has the key that tasks show each other. MUSTER_CERTS
// is a folder made by `muster certs` for connections between machines; MUSTER_PLAIN_TEXT=1 allows
// them without encryption. MUSTER_JOB and MUSTER_INCARNATION are set by Muster's own launchers.
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
#include "muster/net/transport/link_watch.h"
#include "muster/train/loop/run_config.h"
#include "muster/train/loop/strategy.h"
#include "muster/train/loop/training_watch.h"

namespace muster::train {

// The environment variable for ClusterRoleOptions::rendezvous_seconds; launchers set it for all
// their tasks.
inline constexpr char kRendezvousVariable[] = "MUSTER_RENDEZVOUS_TIMEOUT";
// The limits of ClusterRoleOptions::stall_seconds.
inline constexpr int kMinStallSeconds = net::transport::kMinStallSeconds;
inline constexpr int kMaxStallSeconds = net::transport::kMaxStallSeconds;

// Fills in what the environment says of this process: its place in TF_CONFIG, the job, the
// incarnation and the step file.
absl::Status ReadTaskEnvironment(const Clock& clock, RunConfig* config);

struct ClusterRoleOptions {
  std::string agreement = {};  // what must be the same in all tasks (membership/view.h)
  // The job has an evaluator. TensorFlow's TF_CONFIG names an evaluator only in its own task.
  bool evaluator = false;
  // allreduce, ps-sync or ps-async; "": ps-async if there are parameter servers, else allreduce.
  std::string strategy = {};
  // ps-async: how many batches a replica may be ahead of the slowest one; < 0: no bound.
  int64_t staleness = -1;
  // If either is set, MUSTER_CERTS and MUSTER_PLAIN_TEXT in the environment are ignored.
  std::string certificates = {};
  bool plain_text = false;
  // ps-sync: how many replicas' gradients make a step; the others are backups. 0: all.
  int aggregate = 0;
  int min_replicas = 0;  // all-reduce: this many suffice to train without the others; 0: all needed
  // How long tasks wait for one that they need; 0: without a limit. < 0: the value of
  // MUSTER_RENDEZVOUS_TIMEOUT, else 300.
  double rendezvous_seconds = -1;
  const std::atomic<bool>* stop = nullptr;  // true ends waits for others; must outlive the role
  // True, with `stop`: this task alone must end; the others continue or wait for its replacement.
  // Null: a stop is meant for all tasks.
  const std::atomic<bool>* leaving = nullptr;
  // A connection to another machine that gets no data for this long is broken; 0: the default.
  int stall_seconds = 0;
  std::function<void(const std::string& text)> note = {};  // for people; may be empty
};

// For TrainSpec::replicas or EvalSpec::training; both are null for a process that trains alone.
struct ClusterRole {
  std::unique_ptr<Peers> replicas = {};
  std::unique_ptr<TrainingWatch> training = {};  // set in the evaluator
};

// `config` must come from ReadTaskEnvironment. FAILED_PRECONDITION without a key, with certificates
// that other tasks would reject, and for an evaluator if options.evaluator is false; also the
// errors of CheckStrategy, ValidateMinWorkers, CheckProtection and JoinCluster. `clock` must
// outlive the result.
absl::StatusOr<ClusterRole> JoinFromEnvironment(const RunConfig& config,
                                                const ClusterRoleOptions& options,
                                                const Clock& clock);

// INVALID_ARGUMENT if TF_CONFIG has an address of another machine (no loopback address) and neither
// certificates nor plain text are set; also if both are set.
absl::Status CheckProtection(const RunConfig& config, const ClusterRoleOptions& options);

// The life of a task of type ps (ps_cluster.h).
absl::Status RunParameterServer(const RunConfig& config, const ClusterRoleOptions& options,
                                const model::ModelSpec& model);

// INVALID_ARGUMENT if options.strategy does not fit the number of parameter servers, or if
// options.staleness or options.aggregate do not fit the strategy and the number of replicas.
absl::Status CheckStrategy(const ClusterRoleOptions& options, int servers, int replicas);

// How long to wait for a task, in seconds: infinity without a limit. INVALID_ARGUMENT for a
// MUSTER_RENDEZVOUS_TIMEOUT that is no number from 0 on.
absl::StatusOr<double> RendezvousSeconds(const ClusterRoleOptions& options);

// INVALID_ARGUMENT if options.min_replicas is set with parameter servers, or exceeds the number of
// replicas in the cluster.
absl::Status ValidateMinWorkers(const RunConfig& config, const ClusterRoleOptions& options);

// The part of the data that this replica reads: whole files if there are at least as many files as
// replicas, else an equal share of the records.
absl::StatusOr<data::Shard> ShardOf(const RunConfig& config,
                                    const std::vector<std::string>& patterns,
                                    io::FileSystem& files);
// The same for data that is divided into `parts`, for a number of replicas that may change: returns
// the first part.
absl::StatusOr<data::Shard> FirstPart(int parts, const std::vector<std::string>& patterns,
                                      io::FileSystem& files);

}  // namespace muster::train
