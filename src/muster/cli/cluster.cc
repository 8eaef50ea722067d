#include "muster/cli/cluster.h"

#include <cstdlib>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"

#include "muster/cli/run_here.h"
#include "muster/net/token.h"
#include "muster/train/cluster_replicas.h"
#include "muster/train/tf_config.h"

namespace muster::cli {
namespace {

std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool IsReplicated(const train::RunConfig& config) {
  return !config.cluster.empty() && config.num_worker_replicas > 1;
}

absl::StatusOr<net::transport::Address> AddressOf(const std::string& host_and_port) {
  return net::transport::ParseAddress(StrCat("tcp://", host_and_port));
}

// Chief or master first, then workers: the order of ranks.
absl::Status AddTasks(const train::RunConfig& config, train::ClusterSpec* spec) {
  for (const auto type : {job::TaskType::kChief, job::TaskType::kMaster, job::TaskType::kWorker}) {
    const auto found = config.cluster.find(std::string(job::TypeName(type)));
    if (found == config.cluster.end()) continue;
    for (size_t i = 0; i < found->second.size(); ++i) {
      auto address = AddressOf(found->second[i]);
      MUSTER_RETURN_IF_ERROR(Annotate(address.status(), "TF_CONFIG"));
      spec->tasks.push_back({{type, static_cast<int>(i)}, *std::move(address)});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<net::Token> Key() {
  const std::string path = FromEnvironment("MUSTER_KEY_FILE");
  if (path.empty()) {
    return absl::FailedPreconditionError(
        "TF_CONFIG names other replicas, and there is no key to show them: write one (openssl rand "
        "-hex 32 > key; chmod 600 key) and set MUSTER_KEY_FILE to it for every task, or let "
        "'muster train --workers N' start them");
  }
  return net::ReadTokenFile(path);
}

}  // namespace

absl::Status ReadTaskEnvironment(const Clock& clock, train::RunConfig* config) {
  if (const char* const tf_config = std::getenv("TF_CONFIG")) {
    MUSTER_RETURN_IF_ERROR(train::ApplyTfConfig(tf_config, config));
  }
  config->job = FromEnvironment("MUSTER_JOB");
  if (config->job.empty() && !config->cluster.empty()) config->job = "training";
  // Where nobody counts starts, the time does: it only has to grow.
  if (!absl::SimpleAtoi(FromEnvironment("MUSTER_INCARNATION"), &config->incarnation)) {
    config->incarnation = static_cast<int64_t>(clock.WallSeconds());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<train::Replicas>> ReplicasOf(const train::RunConfig& config,
                                                            const std::string& agreement,
                                                            const Clock& clock,
                                                            const std::atomic<bool>& stop) {
  if (!IsReplicated(config)) return nullptr;
  if (config.num_ps_replicas > 0 || config.task_type == "ps" || config.task_type == "evaluator") {
    return absl::UnimplementedError(
        StrCat("task ", config.task_id, " of type '", config.task_type,
               "' (TF_CONFIG): this version trains replicas by all-reduce; leave ps and evaluator "
               "out of the cluster"));
  }
  train::ClusterSpec spec = {
      .job = config.job, .incarnation = config.incarnation, .agreement = agreement};
  const auto self = job::ParseTaskName(StrCat(config.task_type, "-", config.task_id));
  if (!self) return absl::InvalidArgumentError("TF_CONFIG: the task is none that trains");
  spec.self = *self;
  MUSTER_RETURN_IF_ERROR(AddTasks(config, &spec));
  spec.note = SayOfJob;
  spec.stop = &stop;
  MUSTER_ASSIGN_OR_RETURN(const net::Token key, Key());
  return train::JoinCluster(std::move(spec), key, clock);
}

absl::StatusOr<data::Shard> ShardOf(const train::RunConfig& config,
                                    const std::vector<std::string>& patterns,
                                    io::FileSystem& files) {
  if (!IsReplicated(config)) return data::Shard();
  int count = 0;
  for (const std::string& pattern : patterns) {
    MUSTER_ASSIGN_OR_RETURN(const auto found, io::Glob(files, pattern));
    count += static_cast<int>(found.size());
  }
  const int replicas = config.num_worker_replicas;
  return data::Shard{.index = config.global_id_in_cluster.value_or(0),
                     .count = replicas,
                     .by = count >= replicas ? data::ShardBy::kFile : data::ShardBy::kRecord};
}

}  // namespace muster::cli
