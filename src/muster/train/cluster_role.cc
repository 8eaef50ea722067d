#include "muster/train/cluster_role.h"

#include <cstdlib>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

#include "muster/data/batch_stream_reader.h"
#include "muster/data/source_set.h"
#include "muster/job/tf_config.h"
#include "muster/net/listen.h"
#include "muster/net/token.h"
#include "muster/net/transport/tls.h"
#include "muster/train/allreduce/cluster_replicas.h"
#include "muster/train/cluster/tf_config.h"
#include "muster/train/parameter_server/ps_cluster.h"

namespace muster::train {
namespace {

constexpr double kRendezvousSeconds = 300;

std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool HasOtherReplicas(const RunConfig& config) {
  return !config.cluster.empty() && config.num_worker_replicas > 1;
}

absl::StatusOr<net::transport::Address> GetAddress(const std::string& host_and_port) {
  auto address = net::transport::ParseHostPort(host_and_port);
  return address.ok() ? std::move(address) : Annotate(address.status(), "TF_CONFIG");
}

// Adds the tasks in the order of ranks: chief or master first, then workers.
absl::Status AddTasks(const RunConfig& config, ClusterSpec* spec) {
  for (const auto type : {job::TaskType::kChief, job::TaskType::kMaster, job::TaskType::kWorker}) {
    const auto found = config.cluster.find(std::string(job::TypeName(type)));
    if (found == config.cluster.end()) continue;
    for (size_t i = 0; i < found->second.size(); ++i) {
      MUSTER_ASSIGN_OR_RETURN(auto address, GetAddress(found->second[i]));
      spec->tasks.push_back({{type, static_cast<int>(i)}, std::move(address)});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<net::Token> Key() {
  const std::string path = FromEnvironment("MUSTER_KEY_FILE");
  if (path.empty()) {
    return absl::FailedPreconditionError(
        "TF_CONFIG names other tasks, but there is no key to authenticate to them: write one "
        "(openssl rand "
        "-hex 32 > key; chmod 600 key) and set MUSTER_KEY_FILE to it for every task, or let "
        "'muster train --workers N' start them");
  }
  const absl::StatusOr<net::Token> key = net::ReadTokenFile(path);
  return key.ok() ? key : Annotate(key.status(), "the key of MUSTER_KEY_FILE");
}

// Returns the addresses on which the tasks of this training listen; none for a process that trains
// alone.
std::vector<std::string> GetAddresses(const RunConfig& config, bool evaluator) {
  if (config.task_type == "evaluator") return {config.chief_address};
  std::vector<std::string> addresses;
  if (!HasOtherReplicas(config) && config.num_ps_replicas == 0 && !evaluator) return addresses;
  for (const auto& [type, tasks] : config.cluster) {
    if (type != "evaluator") addresses.insert(addresses.end(), tasks.begin(), tasks.end());
  }
  return addresses;
}

// Returns one spelling for addresses that name one place: host names know no case, and localhost is
// 127.0.0.1.
std::string CanonicalAddress(const std::string& host_and_port) {
  const auto address = GetAddress(host_and_port);
  if (!address.ok()) return host_and_port;  // the error is reported when the address is used
  const std::string host = absl::AsciiStrToLower(address->host);
  return StrCat(host == "localhost" ? "127.0.0.1" : host, ":", address->port);
}

// Two tasks that listen on one address would wait for each other until the rendezvous timeout. An
// evaluator does not listen.
absl::Status CheckAddressesDiffer(const RunConfig& config) {
  std::map<std::string, std::string> names;
  for (const auto& [type, addresses] : config.cluster) {
    if (type == "evaluator") continue;
    for (size_t i = 0; i < addresses.size(); ++i) {
      if (addresses[i].empty()) continue;  // the cluster has no task of this index
      const std::string name = StrCat(type, "-", i);
      const auto [other, is_new] = names.try_emplace(CanonicalAddress(addresses[i]), name);
      if (is_new) continue;
      return absl::InvalidArgumentError(StrCat("TF_CONFIG: ", other->second, " and ", name,
                                               " have the same address ", addresses[i],
                                               ": give each task a different one"));
    }
  }
  return absl::OkStatus();
}

bool IsOfThisMachine(const std::string& host_and_port) {
  const auto address = GetAddress(host_and_port);
  if (!address.ok()) return true;  // the error is reported when the address is used
  const auto number = net::internal::ParseAddress(address->host);
  return number.ok() ? number->is_loopback : address->host == "localhost";
}

struct Wanted {
  std::string certificates = {};
  bool plain_text = false;
};

// Whether a variable that switches something is set: to anything but "" and "0".
bool IsOn(const char* variable) {
  const std::string value = FromEnvironment(variable);
  return !value.empty() && value != "0";
}

Wanted WantedBy(const ClusterRoleOptions& options) {
  return {.certificates = options.certificates.empty()
                              ? FromEnvironment(net::transport::kCertsVariable)
                              : options.certificates,
          .plain_text = options.plain_text || IsOn(net::transport::kPlainTextVariable)};
}

absl::StatusOr<net::transport::Protection> MakeProtection(const RunConfig& config,
                                                          const ClusterRoleOptions& options) {
  MUSTER_RETURN_IF_ERROR(CheckProtection(config, options));
  const Wanted wanted = WantedBy(options);
  net::transport::Protection protection = {.plain_text = wanted.plain_text};
  if (wanted.certificates.empty()) return protection;
  std::string host;
  const auto own = config.cluster.find(config.task_type);
  if (own != config.cluster.end() && static_cast<size_t>(config.task_id) < own->second.size()) {
    MUSTER_ASSIGN_OR_RETURN(const auto address,
                            GetAddress(own->second[static_cast<size_t>(config.task_id)]));
    host = address.host;
  }
  MUSTER_ASSIGN_OR_RETURN(protection.tls,
                          net::transport::Tls::Read(wanted.certificates, host,
                                                    IsOn(net::transport::kKernelTlsVariable)));
  return protection;
}

// Makes the context without its protection.
absl::StatusOr<TaskContext> MakeContext(const RunConfig& config,
                                        const ClusterRoleOptions& options) {
  TaskContext context = options.context;
  context.job = config.job;
  context.incarnation = config.incarnation;
  const auto self = job::ParseTaskName(StrCat(config.task_type, "-", config.task_id));
  if (!self) return absl::InvalidArgumentError("TF_CONFIG: the task is not a replica");
  context.self = *self;
  MUSTER_ASSIGN_OR_RETURN(context.rendezvous_seconds,
                          RendezvousSeconds(options.rendezvous_seconds));
  return context;
}

absl::StatusOr<ClusterRole> WatchFromEnvironment(const RunConfig& config,
                                                 const ClusterRoleOptions& options) {
  if (!options.evaluator) {
    return absl::FailedPreconditionError(
        "this task is an evaluator (TF_CONFIG), but --evaluator is not given: give "
        "--evaluator to every task, so that the chief leaves evaluations to it and waits for it");
  }
  ClusterSpec spec;
  MUSTER_ASSIGN_OR_RETURN(spec.context, MakeContext(config, options));
  MUSTER_ASSIGN_OR_RETURN(auto address, GetAddress(config.chief_address));
  spec.tasks.push_back({{job::TaskType::kChief, 0}, std::move(address)});
  MUSTER_ASSIGN_OR_RETURN(const net::Token key, Key());
  MUSTER_ASSIGN_OR_RETURN(spec.context.protection, MakeProtection(config, options));
  ClusterRole role;
  MUSTER_ASSIGN_OR_RETURN(role.training, WatchCluster(std::move(spec), key));
  return role;
}

absl::StatusOr<PsCluster> PsClusterFrom(const RunConfig& config,
                                        const ClusterRoleOptions& options) {
  PsCluster cluster;
  MUSTER_ASSIGN_OR_RETURN(cluster.context, MakeContext(config, options));
  cluster.options = options.ps;
  cluster.options.replicas = config.num_worker_replicas;
  cluster.options.synchronous = options.strategy == StrategyKind::kPsSync;
  cluster.seed = config.seed;
  cluster.threads = config.threads;
  cluster.replica = config.is_chief ? 0 : config.task_id + 1;
  if (config.cluster.contains("master")) cluster.chief = "master-0";
  for (const std::string& server : config.cluster.at("ps")) {
    MUSTER_ASSIGN_OR_RETURN(cluster.servers.emplace_back(), GetAddress(server));
  }
  return cluster;
}

// With parameter servers the chief hosts a membership only for its evaluator.
absl::StatusOr<std::unique_ptr<EvaluatorHost>> HostFor(const RunConfig& config,
                                                       const TaskContext& context,
                                                       const net::Token& key, const Clock& clock) {
  const std::string type(job::TypeName(context.self.type));
  MUSTER_ASSIGN_OR_RETURN(auto address, GetAddress(config.cluster.at(type).front()));
  return HostEvaluator({.context = context, .address = std::move(address)}, key, clock);
}

}  // namespace

absl::Status CheckProtection(const RunConfig& config, const ClusterRoleOptions& options) {
  const Wanted wanted = WantedBy(options);
  if (!wanted.certificates.empty() && wanted.plain_text) {
    return absl::InvalidArgumentError(
        StrCat("certificates in ", wanted.certificates,
               " and plain text are both asked for: leave --plain-text (MUSTER_PLAIN_TEXT) out, or "
               "--certs (MUSTER_CERTS)"));
  }
  if (!wanted.certificates.empty() || wanted.plain_text) return absl::OkStatus();
  const bool evaluator = options.evaluator || config.cluster.contains("evaluator");
  for (const std::string& address : GetAddresses(config, evaluator)) {
    if (IsOfThisMachine(address)) continue;
    return absl::InvalidArgumentError(StrCat(
        "TF_CONFIG: other machines reach ", address,
        ": tasks talk to each other there by TLS only; make certificates with muster certs --out "
        "FOLDER --host ADDRESS, with --host for each machine, and give the folder to every task by "
        "--certs or MUSTER_CERTS; or, on a network that you trust, ask for plain text by "
        "--plain-text or MUSTER_PLAIN_TEXT=1"));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> RendezvousSeconds(double given) {
  double seconds = given;
  if (seconds < 0) {
    const std::string text = FromEnvironment(job::kRendezvousVariable);
    if (text.empty()) return kRendezvousSeconds;
    if (!absl::SimpleAtod(text, &seconds) || !(seconds >= 0)) {
      return absl::InvalidArgumentError(
          StrCat(job::kRendezvousVariable, " is '", text,
                 "', which is not a number of seconds of at least 0"));
    }
  }
  return seconds > 0 ? seconds : std::numeric_limits<double>::infinity();
}

std::string_view StrategyName(StrategyKind kind) {
  switch (kind) {
    case StrategyKind::kAllReduce:
      return "allreduce";
    case StrategyKind::kPsSync:
      return "ps-sync";
    case StrategyKind::kPsAsync:
      return "ps-async";
  }
  return "";
}

StrategyKind DefaultStrategy(int servers) {
  return servers > 0 ? StrategyKind::kPsAsync : StrategyKind::kAllReduce;
}

absl::Status CheckStrategy(const ClusterRoleOptions& options, int servers, int replicas) {
  const StrategyKind strategy = options.strategy.value_or(DefaultStrategy(servers));
  const int aggregate = options.ps.aggregate;
  if (options.ps.staleness >= 0 && (servers == 0 || strategy != StrategyKind::kPsAsync)) {
    return absl::InvalidArgumentError(
        StrCat("--staleness bounds how far replicas of --strategy ps-async may be apart: ",
               servers == 0 ? "give --ps, or leave it out" : "take that strategy, or leave it out",
               "; with the other strategies all replicas do each step together"));
  }
  if (aggregate > 0 && strategy != StrategyKind::kPsSync) {
    return absl::InvalidArgumentError(
        "--replicas-to-aggregate says how many replicas' gradients make a step of --strategy "
        "ps-sync: give --ps and --strategy ps-sync, or leave it out");
  }
  if (aggregate > replicas) {
    return absl::InvalidArgumentError(StrCat("--replicas-to-aggregate ", aggregate,
                                             " is more than the number of replicas, ", replicas,
                                             ": give at most that many"));
  }
  if ((strategy == StrategyKind::kAllReduce) == (servers == 0)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      servers > 0 ? "--strategy allreduce has no use for parameter servers: leave --ps out, or "
                    "take ps-sync or ps-async"
                  : StrCat("--strategy ", StrategyName(strategy),
                           " needs parameter servers: give --ps (muster worker: list them as ps in "
                           "TF_CONFIG)"));
}

absl::Status RunParameterServer(const RunConfig& config, const ClusterRoleOptions& options,
                                const model::ModelSpec& model, io::FileSystem& files) {
  MUSTER_RETURN_IF_ERROR(
      CheckStrategy(options, config.num_ps_replicas, config.num_worker_replicas));
  MUSTER_ASSIGN_OR_RETURN(PsCluster cluster, PsClusterFrom(config, options));
  cluster.files = &files;
  cluster.model_dir = config.model_dir;
  MUSTER_ASSIGN_OR_RETURN(const model::Model built,
                          model::BuildModel(model, {.tensorflow = config.tensorflow}));
  MUSTER_ASSIGN_OR_RETURN(const net::Token key, Key());
  MUSTER_ASSIGN_OR_RETURN(cluster.context.protection, MakeProtection(config, options));
  return ServeParameters(built, cluster, key);
}

absl::Status ReadTaskEnvironment(const Clock& clock, RunConfig* config) {
  if (const char* const tf_config = std::getenv("TF_CONFIG")) {
    MUSTER_RETURN_IF_ERROR(ApplyTfConfig(tf_config, config));
    MUSTER_RETURN_IF_ERROR(CheckTaskTypes(*config));
  }
  config->job = FromEnvironment("MUSTER_JOB");
  config->step_file = FromEnvironment("MUSTER_STEP_FILE");
  const bool is_task = !config->cluster.empty() || config->task_type == "evaluator";
  if (config->job.empty() && is_task) config->job = "training";
  // If no launcher counts starts, the time is used instead: the number only has to grow.
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
  MUSTER_RETURN_IF_ERROR(CheckAddressesDiffer(config));
  MUSTER_RETURN_IF_ERROR(ValidateMinWorkers(config, options));
  MUSTER_RETURN_IF_ERROR(
      CheckStrategy(options, config.num_ps_replicas, config.num_worker_replicas));
  ClusterRole role;
  if (config.num_ps_replicas > 0) {
    MUSTER_ASSIGN_OR_RETURN(auto cluster, PsClusterFrom(config, options));
    MUSTER_ASSIGN_OR_RETURN(const net::Token key, Key());
    MUSTER_ASSIGN_OR_RETURN(cluster.context.protection, MakeProtection(config, options));
    std::unique_ptr<EvaluatorHost> host;
    if (evaluator && config.is_chief) {
      MUSTER_ASSIGN_OR_RETURN(host, HostFor(config, cluster.context, key, clock));
    }
    role.replicas = NewPsPeers(std::move(cluster), key, std::move(host));
    return role;
  }
  if (config.cluster.empty() || (!HasOtherReplicas(config) && !evaluator)) return role;
  ClusterSpec spec;
  MUSTER_ASSIGN_OR_RETURN(spec.context, MakeContext(config, options));
  spec.min_replicas = options.min_replicas;
  MUSTER_RETURN_IF_ERROR(AddTasks(config, &spec));
  spec.evaluator = evaluator;
  MUSTER_ASSIGN_OR_RETURN(const net::Token key, Key());
  MUSTER_ASSIGN_OR_RETURN(spec.context.protection, MakeProtection(config, options));
  MUSTER_ASSIGN_OR_RETURN(role.replicas, JoinCluster(std::move(spec), key, clock));
  return role;
}

absl::Status ValidateMinWorkers(const RunConfig& config, const ClusterRoleOptions& options) {
  if (options.min_replicas == 0) return absl::OkStatus();
  if (config.num_ps_replicas > 0) {
    return absl::InvalidArgumentError(
        "--min-workers is for all-reduce: with parameter servers the others wait for a lost "
        "worker; "
        "leave it out");
  }
  if (options.min_replicas <= config.num_worker_replicas) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("--min-workers ", options.min_replicas,
                                           ": TF_CONFIG has ", config.num_worker_replicas,
                                           " replicas: give at most as many"));
}

absl::StatusOr<data::Shard> GetShard(const RunConfig& config, const InputSpec& input,
                                     io::FileSystem& files) {
  // A stream of batches belongs to one replica.
  if (!HasOtherReplicas(config) || data::IsBatchStream(input.source)) {
    return data::Shard();
  }
  data::Shard shard = {.count = config.num_worker_replicas, .by = data::ShardBy::kRecord};
  if (input.growth == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(shard, GetFirstShard(shard.count, input.source, files));
  }
  // The global id is not the rank: it counts an evaluator in the cluster too.
  shard.index = config.is_chief ? 0 : config.task_id + 1;
  return shard;
}

absl::StatusOr<data::Shard> GetFirstShard(int shards, const data::SourceSpec& source,
                                          io::FileSystem& files) {
  MUSTER_ASSIGN_OR_RETURN(const auto items, data::ListSources(files, source));
  const int count = static_cast<int>(items.size());
  return data::Shard{.index = 0,
                     .count = shards,
                     .by = count >= shards ? data::ShardBy::kFile : data::ShardBy::kRecord};
}

}  // namespace muster::train
