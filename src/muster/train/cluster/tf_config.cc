#include "muster/train/cluster/tf_config.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"

#include "muster/base/nearest.h"
#include "muster/job/tf_config_contents.h"

namespace muster::train {
namespace {

using job::TfConfigContents;
using Cluster = std::map<std::string, std::vector<std::string>>;

absl::Status Refuse(std::string_view why) {
  return absl::InvalidArgumentError(StrCat("TF_CONFIG: ", why));
}

std::string Describe(const Cluster& cluster) {
  std::vector<std::string> jobs;
  for (const auto& [job, tasks] : cluster) {
    jobs.push_back(StrCat(job, ": ", tasks.size(), tasks.size() == 1 ? " task" : " tasks"));
  }
  return absl::StrJoin(jobs, ", ");
}

// Checks the task's type and index against the cluster and stores them; `chief` is "chief" or
// "master".
absl::Status SetTask(const TfConfigContents& contents, const Cluster& cluster,
                     const std::string& chief, RunConfig* config) {
  const auto chiefs = cluster.find(chief);
  if (chiefs == cluster.end() || chiefs->second.empty()) {
    return Refuse(StrCat("if \"cluster\" is set, it must have one \"", chief,
                         "\" node: give one of the workers this type in its place"));
  }
  if (chiefs->second.size() > 1) {
    return Refuse(StrCat("the \"cluster\" must have only one \"", chief, "\" node, it has ",
                         chiefs->second.size()));
  }
  const std::string type = contents.type.value_or("");
  if (type.empty()) return Refuse("if \"cluster\" is set, the task's type must be set");
  if (!contents.index) return Refuse("if \"cluster\" is set, the task's index must be set");
  const int id = *contents.index;
  if (id < 0) return Refuse(StrCat("the task's index must be >= 0, given: ", id));
  config->task_type = type;
  config->task_id = id;
  if (type == "evaluator") return absl::OkStatus();
  const auto tasks = cluster.find(type);
  if (tasks == cluster.end()) {
    return Refuse(
        StrCat("'", type, "' is not a task type of the cluster (", Describe(cluster), ")"));
  }
  if (static_cast<size_t>(id) >= tasks->second.size() || tasks->second[id].empty()) {
    return Refuse(
        StrCat("the cluster has no task ", id, " of type '", type, "' (", Describe(cluster), ")"));
  }
  return absl::OkStatus();
}

// The task's number in the cluster: chief first, then the other jobs by name, ps last.
int GlobalId(const Cluster& cluster, const std::string& chief, const RunConfig& config) {
  std::vector<std::string> jobs = {chief};
  for (const auto& [job, tasks] : cluster) {
    if (job != chief && job != "ps") jobs.push_back(job);
  }
  if (cluster.contains("ps")) jobs.emplace_back("ps");
  int next = 0;
  for (const std::string& job : jobs) {
    if (job == config.task_type) break;
    next += static_cast<int>(cluster.at(job).size());
  }
  return next + config.task_id;
}

int Count(const Cluster& cluster, const std::string& job) {
  const auto found = cluster.find(job);
  return found == cluster.end() ? 0 : static_cast<int>(found->second.size());
}

absl::Status SetInCluster(const TfConfigContents& contents, Cluster cluster, RunConfig* config) {
  const bool with_master = cluster.contains("master");
  if (with_master && cluster.contains("chief")) {
    return Refuse("if \"master\" is in the cluster, job \"chief\" is not supported");
  }
  const std::string chief = with_master ? "master" : "chief";
  MUSTER_RETURN_IF_ERROR(SetTask(contents, cluster, chief, config));
  config->is_chief = config->task_type == chief;
  config->chief_address = cluster.at(chief).front();
  if (config->task_type == "evaluator") {
    if (with_master) {
      return Refuse("if \"master\" is in the cluster, task type \"evaluator\" is not supported");
    }
    config->evaluation_master = contents.eval_session_master.value_or("");
    config->cluster.clear();
    config->master.clear();
    config->num_ps_replicas = config->num_worker_replicas = 0;
    config->global_id_in_cluster.reset();
    return absl::OkStatus();
  }
  config->master = contents.session_master.value_or("");
  const bool alone = cluster.size() == 1 && cluster.begin()->second.size() == 1;
  if (!contents.session_master && !alone) {
    config->master = StrCat("grpc://", cluster.at(config->task_type)[config->task_id]);
  }
  config->evaluation_master.clear();
  config->num_ps_replicas = Count(cluster, "ps");
  config->num_worker_replicas = Count(cluster, "worker") + 1;
  config->global_id_in_cluster = GlobalId(cluster, chief, *config);
  config->cluster = std::move(cluster);
  return absl::OkStatus();
}

absl::Status SetAlone(const TfConfigContents& contents, RunConfig* config) {
  if (contents.type && *contents.type != "worker") {
    return Refuse(StrCat("if \"cluster\" is not set, the task's type must be worker, given: '",
                         *contents.type, "'"));
  }
  if (contents.index.value_or(0) != 0) {
    return Refuse(
        StrCat("if \"cluster\" is not set, the task's index must be 0, given: ", *contents.index));
  }
  config->master = contents.session_master.value_or("");
  config->evaluation_master = contents.eval_session_master.value_or("");
  config->cluster.clear();
  config->chief_address.clear();
  config->task_type = "worker";
  config->task_id = 0;
  config->is_chief = true;
  config->num_ps_replicas = 0;
  config->num_worker_replicas = 1;
  config->global_id_in_cluster = 0;
  return absl::OkStatus();
}

absl::Status SetModelDir(const std::string& model_dir, RunConfig* config) {
  if (model_dir.empty()) return absl::OkStatus();
  if (!config->model_dir.empty() && config->model_dir != model_dir) {
    return Refuse(StrCat("model_dir is '", model_dir, "', but '", config->model_dir,
                         "' was given; leave one out or make them equal"));
  }
  config->model_dir = model_dir;
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyTfConfig(std::string_view json, RunConfig* config) {
  if (json.empty()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const TfConfigContents contents, job::ParseTfConfig(json));
  RunConfig next = *config;
  MUSTER_RETURN_IF_ERROR(SetModelDir(contents.model_dir, &next));
  next.service = contents.service;
  Cluster cluster;
  for (const job::TfConfigJob& job : contents.cluster) cluster[job.name] = job.addresses;
  MUSTER_RETURN_IF_ERROR(cluster.empty() ? SetAlone(contents, &next)
                                         : SetInCluster(contents, std::move(cluster), &next));
  *config = std::move(next);
  return absl::OkStatus();
}

absl::Status CheckTaskTypes(const RunConfig& config) {
  const std::vector<std::string> known = {"chief", "worker", "ps", "evaluator", "master"};
  for (const auto& [type, addresses] : config.cluster) {
    if (std::ranges::find(known, type) != known.end()) continue;
    return Refuse(StrCat("the cluster has tasks of the type '", type,
                         "'; types are chief, worker, ps, evaluator and master",
                         DidYouMean(type, known)));
  }
  return absl::OkStatus();
}

}  // namespace muster::train
