#include "muster/train/cluster/tf_config.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"

#include "muster/base/json_depth.h"
#include "nlohmann/json.hpp"

namespace muster::train {
namespace {

using formats::Json;
using Cluster = std::map<std::string, std::vector<std::string>>;

constexpr size_t kMaxTfConfigBytes = size_t{1} << 24;
constexpr int kMaxTasks = 1 << 20;
constexpr int kMaxDepth = 32;  // the JSON library prints recursively

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

absl::StatusOr<std::string> TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::string();
  if (!found->is_string()) return Refuse(StrCat("\"", key, "\" must be a string"));
  return found->get<std::string>();
}

absl::StatusOr<Json> ObjectOf(const Json& parent, const char* key) {
  const auto found = parent.find(key);
  if (found == parent.end() || found->is_null()) return Json::object();
  if (!found->is_object()) return Refuse(StrCat("\"", key, "\" must be an object"));
  return *found;
}

// An index: a number, or text that is one, as Python's int() accepts it.
absl::StatusOr<int> IndexOf(const Json& value, std::string_view what) {
  int64_t index = -1;
  bool sound = false;
  if (value.is_number_integer()) {
    sound = !value.is_number_unsigned() ||
            value.get<uint64_t>() <= uint64_t{std::numeric_limits<int>::max()};
    if (sound) index = value.get<int64_t>();
  } else if (value.is_string()) {
    sound = absl::SimpleAtoi(value.get<std::string>(), &index);
  }
  if (!sound || index > std::numeric_limits<int>::max() ||
      index < std::numeric_limits<int>::min()) {
    return Refuse(StrCat(what, " must be a whole number, given: ", value.dump()));
  }
  return static_cast<int>(index);
}

// The addresses of a job's tasks: `value` is a list of addresses, or an object from index to
// address; tasks whose index is missing then have the address "".
absl::StatusOr<std::vector<std::string>> TasksOf(const std::string& job, const Json& value) {
  std::vector<std::string> tasks;
  const auto put = [&](int index, const Json& address) -> absl::Status {
    if (!address.is_string() || address.get<std::string>().empty()) {
      return Refuse(StrCat("the address of task ", index, " of job '", job,
                           "' must be a non-empty string, given: ", address.dump()));
    }
    if (index < 0 || index >= kMaxTasks) {
      return Refuse(StrCat("job '", job, "' has no task ", index));
    }
    if (tasks.size() <= static_cast<size_t>(index)) tasks.resize(index + 1);
    tasks[index] = address.get<std::string>();
    return absl::OkStatus();
  };
  if (value.is_array()) {
    for (const Json& address : value) {
      MUSTER_RETURN_IF_ERROR(put(static_cast<int>(tasks.size()), address));
    }
  } else if (value.is_object()) {
    for (const auto& [key, address] : value.items()) {
      MUSTER_ASSIGN_OR_RETURN(const int index,
                              IndexOf(Json(key), StrCat("the task index of job '", job, "'")));
      MUSTER_RETURN_IF_ERROR(put(index, address));
    }
  } else {
    return Refuse(StrCat("the tasks of job '", job, "' must be a list of addresses"));
  }
  return tasks;
}

absl::StatusOr<Cluster> ClusterOf(const Json& config) {
  MUSTER_ASSIGN_OR_RETURN(const Json object, ObjectOf(config, "cluster"));
  Cluster cluster;
  for (const auto& [job, value] : object.items()) {
    MUSTER_ASSIGN_OR_RETURN(cluster[job], TasksOf(job, value));
  }
  return cluster;
}

// Checks the task's type and index against the cluster and stores them; `chief` is "chief" or
// "master".
absl::Status SetTask(const Json& task, const Cluster& cluster, const std::string& chief,
                     RunConfig* config) {
  const auto chiefs = cluster.find(chief);
  if (chiefs == cluster.end() || chiefs->second.empty()) {
    return Refuse(StrCat("if \"cluster\" is set, it must have one \"", chief, "\" node"));
  }
  if (chiefs->second.size() > 1) {
    return Refuse(StrCat("the \"cluster\" must have only one \"", chief, "\" node, it has ",
                         chiefs->second.size()));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string type, TextOf(task, "type"));
  if (type.empty()) return Refuse("if \"cluster\" is set, the task's type must be set");
  const auto index = task.find("index");
  if (index == task.end() || index->is_null()) {
    return Refuse("if \"cluster\" is set, the task's index must be set");
  }
  MUSTER_ASSIGN_OR_RETURN(const int id, IndexOf(*index, "the task's index"));
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

absl::Status SetInCluster(const Json& json, const Json& task, Cluster cluster, RunConfig* config) {
  const bool with_master = cluster.contains("master");
  if (with_master && cluster.contains("chief")) {
    return Refuse("if \"master\" is in the cluster, job \"chief\" is not supported");
  }
  const std::string chief = with_master ? "master" : "chief";
  MUSTER_RETURN_IF_ERROR(SetTask(task, cluster, chief, config));
  config->is_chief = config->task_type == chief;
  config->chief_address = cluster.at(chief).front();
  if (config->task_type == "evaluator") {
    if (with_master) {
      return Refuse("if \"master\" is in the cluster, task type \"evaluator\" is not supported");
    }
    MUSTER_ASSIGN_OR_RETURN(config->evaluation_master, TextOf(json, "eval_session_master"));
    config->cluster.clear();
    config->master.clear();
    config->num_ps_replicas = config->num_worker_replicas = 0;
    config->global_id_in_cluster.reset();
    return absl::OkStatus();
  }
  MUSTER_ASSIGN_OR_RETURN(config->master, TextOf(json, "session_master"));
  const bool alone = cluster.size() == 1 && cluster.begin()->second.size() == 1;
  if (!json.contains("session_master") && !alone) {
    config->master = StrCat("grpc://", cluster.at(config->task_type)[config->task_id]);
  }
  config->evaluation_master.clear();
  config->num_ps_replicas = Count(cluster, "ps");
  config->num_worker_replicas = Count(cluster, "worker") + 1;
  config->global_id_in_cluster = GlobalId(cluster, chief, *config);
  config->cluster = std::move(cluster);
  return absl::OkStatus();
}

absl::Status SetAlone(const Json& json, const Json& task, RunConfig* config) {
  MUSTER_ASSIGN_OR_RETURN(const std::string type, TextOf(task, "type"));
  if (task.contains("type") && type != "worker") {
    return Refuse(
        StrCat("if \"cluster\" is not set, the task's type must be worker, given: '", type, "'"));
  }
  if (task.contains("index")) {
    MUSTER_ASSIGN_OR_RETURN(const int id, IndexOf(task.at("index"), "the task's index"));
    if (id != 0) {
      return Refuse(StrCat("if \"cluster\" is not set, the task's index must be 0, given: ", id));
    }
  }
  MUSTER_ASSIGN_OR_RETURN(config->master, TextOf(json, "session_master"));
  MUSTER_ASSIGN_OR_RETURN(config->evaluation_master, TextOf(json, "eval_session_master"));
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

absl::Status SetModelDir(const Json& json, RunConfig* config) {
  if (!json.contains("model_dir") || json.at("model_dir").is_null()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const std::string model_dir, TextOf(json, "model_dir"));
  if (model_dir.empty()) return Refuse("model_dir should be non-empty");
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
  if (json.size() > kMaxTfConfigBytes) return Refuse("longer than 16 MiB");
  if (FindDeeperJson(json, kMaxDepth) != json.npos) return Refuse("nested too deeply");
  const Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return Refuse("not JSON");
  if (!root.is_object()) return Refuse("must be a JSON object with \"cluster\" and \"task\"");
  RunConfig next = *config;
  MUSTER_RETURN_IF_ERROR(SetModelDir(root, &next));
  next.service.clear();
  if (root.contains("service") && !root.at("service").is_null()) {
    if (!root.at("service").is_object()) {
      return Refuse(StrCat("\"service\" must be an object, given: ", root.at("service").dump()));
    }
    next.service = root.at("service").dump();
  }
  MUSTER_ASSIGN_OR_RETURN(Cluster cluster, ClusterOf(root));
  MUSTER_ASSIGN_OR_RETURN(const Json task, ObjectOf(root, "task"));
  MUSTER_RETURN_IF_ERROR(cluster.empty() ? SetAlone(root, task, &next)
                                         : SetInCluster(root, task, std::move(cluster), &next));
  *config = std::move(next);
  return absl::OkStatus();
}

}  // namespace muster::train
