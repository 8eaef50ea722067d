#include "muster/job/tf_config.h"

#include <optional>
#include <utility>

#include "muster/base/nearest.h"
#include "muster/job/tf_config_contents.h"

namespace muster::job {
namespace {

std::vector<std::string> Hosts(const Cluster& cluster, TaskType type) {
  std::vector<std::string> hosts;
  for (const auto& [id, address] : cluster) {
    if (id.type == type) hosts.push_back(address);
  }
  return hosts;
}

absl::Status CheckIndices(const Cluster& cluster, TaskId task) {
  std::map<TaskType, int> next;
  for (const auto& [id, address] : cluster) {
    if (const int expected = next[id.type]++; id.index != expected) {
      return absl::InvalidArgumentError(StrCat("the cluster has ", TaskName(id), " but no ",
                                               TaskName({id.type, expected}),
                                               ": indices must be 0, 1, 2, ... without a gap"));
    }
  }
  if (!cluster.contains(task)) {
    return absl::InvalidArgumentError(StrCat(TaskName(task), " is not in the cluster"));
  }
  return absl::OkStatus();
}

// Returns the cluster that a task of a job with dynamic workers sees: a worker sees itself and all
// parameter servers, any other task sees itself.
std::vector<TfConfigJob> SparseCluster(const Cluster& cluster, TaskId task) {
  TfConfigJob self = {.name = std::string(TypeName(task.type))};
  if (task.type != TaskType::kWorker) {
    self.addresses = {cluster.at(task)};
    return {std::move(self)};
  }
  self.by_index = true;
  self.addresses.resize(static_cast<size_t>(task.index) + 1);
  self.addresses.back() = cluster.at(task);
  return {std::move(self), {.name = "ps", .addresses = Hosts(cluster, TaskType::kPs)}};
}

// Returns the replacement of {name} or {name:separator}, if there is one.
std::optional<std::string> Replacement(std::string_view name, const Placeholders& values) {
  const TaskId task = values.task;
  if (name == "type") return std::string(TypeName(task.type));
  if (name == "index") return StrCat(task.index);
  if (name == "job") return values.job;
  if (name == "namespace") return values.name_space;
  if (name == "node") return values.node;
  if (name == "host" || name == "port") {
    const auto own = values.cluster.find(task);
    if (own == values.cluster.end()) return std::nullopt;
    const size_t colon = own->second.rfind(':');
    return name == "host" ? own->second.substr(0, colon) : own->second.substr(colon + 1);
  }
  std::string_view separator = ",";
  if (const size_t colon = name.find(':'); colon != std::string_view::npos) {
    separator = name.substr(colon + 1);
    name = name.substr(0, colon);
  }
  for (const TaskType type : kTaskTypes) {
    if (name != StrCat(TypeName(type), "_hosts")) continue;
    std::string joined;
    for (const std::string& host : Hosts(values.cluster, type)) {
      joined += joined.empty() ? host : StrCat(separator, host);
    }
    return joined;
  }
  return std::nullopt;
}

}  // namespace

std::string GetModelDir(std::string_view tf_config) {
  auto contents = ParseTfConfig(tf_config);
  return contents.ok() ? std::move(contents->model_dir) : "";
}

absl::StatusOr<std::string> TfConfig(const JobSpec& spec, const Cluster& cluster, TaskId task,
                                     const TfConfigOptions& options) {
  MUSTER_RETURN_IF_ERROR(CheckIndices(cluster, task));
  if (spec.total() == 1) return std::string();
  const auto name = [&](TaskType type) {
    return std::string(
        TypeName(type == TaskType::kMaster && options.master_as_chief ? TaskType::kChief : type));
  };
  TfConfigContents contents = {
      .type = name(task.type), .index = task.index, .model_dir = options.model_dir};
  if (spec.dynamic_workers) {
    contents.cluster = SparseCluster(cluster, task);
  } else {
    for (const TaskType type : kTaskTypes) {
      if (type == TaskType::kEvaluator && task.type != type && !options.evaluator_in_cluster) {
        continue;
      }
      std::vector<std::string> hosts = Hosts(cluster, type);
      if (!hosts.empty()) {
        contents.cluster.push_back({.name = name(type), .addresses = std::move(hosts)});
      }
    }
    contents.environment = "cloud";
  }
  return PrintTfConfig(contents);
}

Placeholders PlaceholdersFor(const JobSpec& spec, const Cluster& cluster, TaskId task,
                             const std::string& node) {
  return {.cluster = cluster,
          .task = task,
          .job = spec.name,
          .name_space = spec.name_space.empty() ? "default" : spec.name_space,
          .node = node};
}

std::string ExpandPlaceholders(std::string_view text, const Placeholders& values) {
  std::string out;
  while (!text.empty()) {
    const size_t open = text.find('{');
    const size_t close = open == std::string_view::npos ? open : text.find('}', open);
    if (close == std::string_view::npos) break;
    const auto replacement = Replacement(text.substr(open + 1, close - open - 1), values);
    out += text.substr(0, open);
    if (replacement) {
      out += *replacement;
      text.remove_prefix(close + 1);
    } else {
      out += '{';
      text.remove_prefix(open + 1);
    }
  }
  return out += text;
}

absl::StatusOr<Expect> ParseExpect(std::string_view name) {
  if (name.empty()) return Expect::kAny;
  if (name == "estimator") return Expect::kEstimator;
  if (name == "mwms") return Expect::kMultiWorkerMirrored;
  if (name == "psv2") return Expect::kParameterServer;
  const std::vector<std::string> known = {"estimator", "mwms", "psv2"};
  return absl::InvalidArgumentError(
      StrCat("unknown kind of program '", name, "'", DidYouMean(name, known)));
}

absl::Status CheckCluster(const JobSpec& spec, Expect expect) {
  MUSTER_RETURN_IF_ERROR(Validate(spec, StrCat("job ", spec.name)));
  const int ps = spec.count(TaskType::kPs), workers = spec.count(TaskType::kWorker);
  const int evaluators = spec.count(TaskType::kEvaluator);
  const auto fail = [&](std::string_view message) {
    return absl::InvalidArgumentError(StrCat("job ", spec.name, ": ", message));
  };
  if (expect != Expect::kAny && evaluators > 1) {
    return fail("TensorFlow programs have one evaluator at most");
  }
  switch (expect) {
    case Expect::kAny:
      break;
    case Expect::kEstimator:
      if (spec.total() - evaluators > 1 && !spec.leader()) {
        return fail("an Estimator program on several tasks needs a chief: add --chief");
      }
      if (ps == 0 && workers > 0) {
        return fail(
            "an Estimator's chief and workers share their weights through a ps: add --ps 1");
      }
      break;
    case Expect::kMultiWorkerMirrored:
      if (ps > 0) return fail("MultiWorkerMirroredStrategy has no ps: leave --ps out");
      if (spec.count(TaskType::kMaster) > 0) {
        return fail("MultiWorkerMirroredStrategy knows no master: make it the chief");
      }
      break;
    case Expect::kParameterServer:
      if (spec.count(TaskType::kChief) == 0) {
        return fail("ParameterServerStrategy is coordinated by a chief: add --chief");
      }
      if (ps == 0 || workers == 0) {
        return fail("ParameterServerStrategy needs at least one ps and one worker");
      }
      break;
  }
  return absl::OkStatus();
}

}  // namespace muster::job
