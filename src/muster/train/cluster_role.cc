#include "muster/train/cluster_role.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"

#include "muster/net/token.h"
#include "muster/train/cluster_replicas.h"
#include "muster/train/served_cluster.h"
#include "muster/train/tf_config.h"

namespace muster::train {
namespace {

std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool HasOtherReplicas(const RunConfig& config) {
  return !config.cluster.empty() && config.num_worker_replicas > 1;
}

absl::StatusOr<net::transport::Address> AddressOf(const std::string& host_and_port) {
  auto address = net::transport::ParseAddress(StrCat("tcp://", host_and_port));
  return address.ok() ? std::move(address) : Annotate(address.status(), "TF_CONFIG");
}

// Chief or master first, then workers: the order of ranks.
absl::Status AddTasks(const RunConfig& config, ClusterSpec* spec) {
  for (const auto type : {job::TaskType::kChief, job::TaskType::kMaster, job::TaskType::kWorker}) {
    const auto found = config.cluster.find(std::string(job::TypeName(type)));
    if (found == config.cluster.end()) continue;
    for (size_t i = 0; i < found->second.size(); ++i) {
      MUSTER_ASSIGN_OR_RETURN(auto address, AddressOf(found->second[i]));
      spec->tasks.push_back({{type, static_cast<int>(i)}, std::move(address)});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<net::Token> Key() {
  const std::string path = FromEnvironment("MUSTER_KEY_FILE");
  if (path.empty()) {
    return absl::FailedPreconditionError(
        "TF_CONFIG names other tasks, and there is no key to show them: write one (openssl rand "
        "-hex 32 > key; chmod 600 key) and set MUSTER_KEY_FILE to it for every task, or let "
        "'muster train --workers N' start them");
  }
  return net::ReadTokenFile(path);
}

absl::StatusOr<ClusterSpec> SpecOf(const RunConfig& config, const ClusterRoleOptions& options) {
  ClusterSpec spec = {
      .job = config.job, .incarnation = config.incarnation, .agreement = options.agreement};
  const auto self = job::ParseTaskName(StrCat(config.task_type, "-", config.task_id));
  if (!self) return absl::InvalidArgumentError("TF_CONFIG: the task is none that trains");
  spec.self = *self;
  spec.note = options.note;
  spec.stop = options.stop;
  spec.min_replicas = options.min_replicas;
  return spec;
}

absl::StatusOr<ClusterRole> WatchFromEnvironment(const RunConfig& config,
                                                 const ClusterRoleOptions& options) {
  if (!options.evaluator) {
    return absl::FailedPreconditionError(
        "this task is an evaluator (TF_CONFIG), but the training is not told of one: give "
        "--evaluator to every task, so that the chief leaves evaluations to it and waits for it");
  }
  MUSTER_ASSIGN_OR_RETURN(ClusterSpec spec, SpecOf(config, options));
  MUSTER_ASSIGN_OR_RETURN(auto address, AddressOf(config.chief_address));
  spec.tasks.push_back({{job::TaskType::kChief, 0}, std::move(address)});
  MUSTER_ASSIGN_OR_RETURN(const net::Token key, Key());
  ClusterRole role;
  MUSTER_ASSIGN_OR_RETURN(role.training, WatchCluster(std::move(spec), key));
  return role;
}

absl::StatusOr<ServedCluster> ServedBy(const RunConfig& config, const ClusterRoleOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const ClusterSpec spec, SpecOf(config, options));
  ServedCluster cluster = {.job = spec.job,
                           .self = spec.self,
                           .incarnation = spec.incarnation,
                           .agreement = spec.agreement,
                           .synchronous = options.strategy == "ps-sync",
                           .staleness = options.staleness,
                           .replica = config.is_chief ? 0 : config.task_id + 1,
                           .replicas = config.num_worker_replicas,
                           .stop = options.stop,
                           .note = options.note};
  if (cluster.staleness >= 0) cluster.agreement += StrCat(", staleness ", cluster.staleness);
  for (const std::string& server : config.cluster.at("ps")) {
    MUSTER_ASSIGN_OR_RETURN(cluster.servers.emplace_back(), AddressOf(server));
  }
  return cluster;
}

// The chief of parameter servers is no member of anything; its evaluator looks for it all the same.
absl::StatusOr<std::unique_ptr<EvaluatorHost>> HostFor(const RunConfig& config,
                                                       const ServedCluster& cluster,
                                                       const net::Token& key, const Clock& clock) {
  const std::string type(job::TypeName(cluster.self.type));
  MUSTER_ASSIGN_OR_RETURN(auto address, AddressOf(config.cluster.at(type).front()));
  return HostEvaluator({.job = cluster.job,
                        .self = cluster.self,
                        .incarnation = cluster.incarnation,
                        .agreement = cluster.agreement,
                        .address = std::move(address),
                        .rendezvous_seconds = cluster.rendezvous_seconds,
                        .stop = cluster.stop,
                        .note = cluster.note},
                       key, clock);
}

}  // namespace

absl::Status CheckStrategy(const std::string& strategy, int servers, int64_t staleness) {
  const bool asynchronous = servers > 0 && (strategy.empty() || strategy == "ps-async");
  if (staleness >= 0 && !asynchronous) {
    return absl::InvalidArgumentError(
        "--staleness bounds how far replicas of --strategy ps-async run apart: give --ps, or leave "
        "it out; with the other strategies all do each step together");
  }
  if (strategy.empty() || (strategy == "allreduce") == (servers == 0)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      servers > 0 ? "--strategy allreduce has no use for parameter servers: leave --ps out, or "
                    "take ps-sync or ps-async"
                  : StrCat("--strategy ", strategy, " needs parameter servers: give --ps"));
}

absl::Status RunParameterServer(const RunConfig& config, const ClusterRoleOptions& options,
                                const model::ModelSpec& model) {
  MUSTER_RETURN_IF_ERROR(
      CheckStrategy(options.strategy, config.num_ps_replicas, options.staleness));
  MUSTER_ASSIGN_OR_RETURN(const ServedCluster cluster, ServedBy(config, options));
  MUSTER_ASSIGN_OR_RETURN(const model::Model built, model::BuildModel(model));
  MUSTER_ASSIGN_OR_RETURN(const net::Token key, Key());
  return ServeParameters(built, cluster, key);
}

absl::Status ReadTaskEnvironment(const Clock& clock, RunConfig* config) {
  if (const char* const tf_config = std::getenv("TF_CONFIG")) {
    MUSTER_RETURN_IF_ERROR(ApplyTfConfig(tf_config, config));
  }
  config->job = FromEnvironment("MUSTER_JOB");
  config->step_file = FromEnvironment("MUSTER_STEP_FILE");
  const bool is_task = !config->cluster.empty() || config->task_type == "evaluator";
  if (config->job.empty() && is_task) config->job = "training";
  // Where nobody counts starts, the time does: it only has to grow.
  if (!absl::SimpleAtoi(FromEnvironment("MUSTER_INCARNATION"), &config->incarnation)) {
    config->incarnation = static_cast<int64_t>(clock.WallSeconds());
  }
  return absl::OkStatus();
}

absl::StatusOr<ClusterRole> JoinFromEnvironment(const RunConfig& config,
                                                const ClusterRoleOptions& options,
                                                const Clock& clock) {
  if (config.task_type == "evaluator" && config.task_id == 0) {
    return WatchFromEnvironment(config, options);
  }
  const bool evaluator = options.evaluator || config.cluster.contains("evaluator");
  MUSTER_RETURN_IF_ERROR(CheckFewest(config, options));
  MUSTER_RETURN_IF_ERROR(
      CheckStrategy(options.strategy, config.num_ps_replicas, options.staleness));
  ClusterRole role;
  if (config.num_ps_replicas > 0) {
    MUSTER_ASSIGN_OR_RETURN(auto cluster, ServedBy(config, options));
    MUSTER_ASSIGN_OR_RETURN(const net::Token key, Key());
    std::unique_ptr<EvaluatorHost> host;
    if (evaluator && config.is_chief) {
      MUSTER_ASSIGN_OR_RETURN(host, HostFor(config, cluster, key, clock));
    }
    role.replicas = NewServedPeers(std::move(cluster), key, std::move(host));
    return role;
  }
  if (config.cluster.empty() || (!HasOtherReplicas(config) && !evaluator)) return role;
  MUSTER_ASSIGN_OR_RETURN(ClusterSpec spec, SpecOf(config, options));
  MUSTER_RETURN_IF_ERROR(AddTasks(config, &spec));
  spec.evaluator = evaluator;
  MUSTER_ASSIGN_OR_RETURN(const net::Token key, Key());
  MUSTER_ASSIGN_OR_RETURN(role.replicas, JoinCluster(std::move(spec), key, clock));
  return role;
}

absl::Status CheckFewest(const RunConfig& config, const ClusterRoleOptions& options) {
  if (options.min_replicas == 0) return absl::OkStatus();
  if (config.num_ps_replicas > 0) {
    return absl::InvalidArgumentError(
        "--min-workers is for all-reduce: with parameter servers a worker that is lost is waited "
        "for; leave it out");
  }
  if (options.min_replicas <= config.num_worker_replicas) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("--min-workers ", options.min_replicas,
                                           ": TF_CONFIG has ", config.num_worker_replicas,
                                           " replicas"));
}

absl::StatusOr<data::Shard> ShardOf(const RunConfig& config,
                                    const std::vector<std::string>& patterns,
                                    io::FileSystem& files) {
  if (!HasOtherReplicas(config)) return data::Shard();
  MUSTER_ASSIGN_OR_RETURN(data::Shard shard,
                          FirstPart(config.num_worker_replicas, patterns, files));
  // Not the global id: an evaluator in the cluster has one of those too.
  shard.index = config.is_chief ? 0 : config.task_id + 1;
  return shard;
}

absl::StatusOr<data::Shard> FirstPart(int parts, const std::vector<std::string>& patterns,
                                      io::FileSystem& files) {
  int count = 0;
  for (const std::string& pattern : patterns) {
    MUSTER_ASSIGN_OR_RETURN(const auto found, io::Glob(files, pattern));
    count += static_cast<int>(found.size());
  }
  return data::Shard{.index = 0,
                     .count = parts,
                     .by = count >= parts ? data::ShardBy::kFile : data::ShardBy::kRecord};
}

}  // namespace muster::train
