// ClusterRole: the place of this process in a training of several tasks, from its environment.
// TF_CONFIG names the tasks. MUSTER_KEY_FILE has the key by which tasks authenticate to each other.
// MUSTER_CERTS is a folder made by `muster certs` for connections between machines;
// MUSTER_PLAIN_TEXT=1 allows them without encryption, MUSTER_KERNEL_TLS=1 lets the kernel encrypt.
// MUSTER_JOB and MUSTER_INCARNATION are set by Muster's own launchers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/data/source.h"
#include "muster/io/file_system.h"
#include "muster/model/spec/model_spec.h"
#include "muster/net/transport/link_watch.h"
#include "muster/ps/wire/ps_options.h"
#include "muster/train/cluster/task_context.h"
#include "muster/train/input/input.h"
#include "muster/train/loop/run_config.h"
#include "muster/train/loop/strategy.h"
#include "muster/train/loop/training_watch.h"

namespace muster::train {

// The limits of ClusterRoleOptions::stall_seconds.
inline constexpr int kMinStallSeconds = net::transport::kMinStallSeconds;
inline constexpr int kMaxStallSeconds = net::transport::kMaxStallSeconds;

// Fills in what the environment says of this process: its place in TF_CONFIG, the job, the
// incarnation and the step file. INVALID_ARGUMENT for a TF_CONFIG that is not one, and for types of
// tasks that no training has.
absl::Status ReadTaskEnvironment(const Clock& clock, RunConfig* config);

// How replicas train together.
enum class StrategyKind { kAllReduce, kPsSync, kPsAsync };
// The names that flags use: "allreduce", "ps-sync", "ps-async".
std::string_view StrategyName(StrategyKind kind);
inline constexpr StrategyKind kAllStrategies[] = {StrategyKind::kAllReduce, StrategyKind::kPsSync,
                                                  StrategyKind::kPsAsync};
// The strategy if none is given: ps-async if there are parameter servers, else all-reduce.
StrategyKind DefaultStrategy(int servers);

struct ClusterRoleOptions {
  // The caller sets agreement, stop, leaving, stall_seconds and note. The rest comes from the
  // environment and from the options below.
  TaskContext context = {};
  // The job has an evaluator. TensorFlow's TF_CONFIG names an evaluator only in its own task.
  bool evaluator = false;
  std::optional<StrategyKind> strategy = {};
  ps::PsOptions ps = {};          // the caller sets aggregate and staleness
  std::string certificates = {};  // a folder; "": that of MUSTER_CERTS, if it is set
  bool plain_text = false;        // else MUSTER_PLAIN_TEXT can ask for it
  int min_replicas = 0;  // all-reduce: this many replicas suffice to train; 0: all are needed
  // How long tasks wait for one that they need; 0: without a limit. < 0: the value of
  // MUSTER_RENDEZVOUS_TIMEOUT, else 300.
  double rendezvous_seconds = -1;
};

// Values for TrainSpec::replicas and EvalSpec::training; both are null for a process that trains
// alone.
struct ClusterRole {
  std::unique_ptr<Peers> replicas = {};
  std::unique_ptr<TrainingWatch> training = {};  // set in the evaluator
};

// `config` must come from ReadTaskEnvironment. FAILED_PRECONDITION without a key, with certificates
// that other tasks would reject, and for an evaluator if options.evaluator is false;
// INVALID_ARGUMENT for two tasks of one address; also the errors of CheckStrategy,
// ValidateMinWorkers, CheckProtection and JoinCluster. `clock` must outlive the result.
absl::StatusOr<ClusterRole> JoinFromEnvironment(const RunConfig& config,
                                                const ClusterRoleOptions& options,
                                                const Clock& clock);

// INVALID_ARGUMENT if TF_CONFIG has an address of another machine (no loopback address) and neither
// certificates nor plain text are set; also if both are set.
absl::Status CheckProtection(const RunConfig& config, const ClusterRoleOptions& options);

// Runs a task of type ps until it ends (ps_cluster.h). `files` has the model folder, if this
// machine has it.
absl::Status RunParameterServer(const RunConfig& config, const ClusterRoleOptions& options,
                                const model::ModelSpec& model, io::FileSystem& files);

// INVALID_ARGUMENT if options.strategy does not fit the number of parameter servers, or if
// options.ps.staleness or options.ps.aggregate do not fit the strategy and the number of replicas.
absl::Status CheckStrategy(const ClusterRoleOptions& options, int servers, int replicas);

// Returns how long to wait for a task, in seconds: infinity without a limit. `given` is
// ClusterRoleOptions::rendezvous_seconds. INVALID_ARGUMENT for a MUSTER_RENDEZVOUS_TIMEOUT that is
// not a number of at least 0.
absl::StatusOr<double> RendezvousSeconds(double given);

// INVALID_ARGUMENT if options.min_replicas is set with parameter servers, or exceeds the number of
// replicas in the cluster.
absl::Status ValidateMinWorkers(const RunConfig& config, const ClusterRoleOptions& options);

// The shard of the data that this replica reads: whole files (or partitions) if there are at least
// as many as replicas, else, and of data that grows, an equal share of the records.
absl::StatusOr<data::Shard> GetShard(const RunConfig& config, const InputSpec& input,
                                     io::FileSystem& files);
// Like GetShard, for data that is divided into `shards` for a number of replicas that may change:
// returns the first shard.
absl::StatusOr<data::Shard> GetFirstShard(int shards, const data::SourceSpec& source,
                                          io::FileSystem& files);

}  // namespace muster::train
