#include "muster/job/tony_environment.h"

#include "muster/base/strings.h"
#include "muster/formats/json_fields.h"

namespace muster::job {
namespace {

constexpr TaskId kFirstWorker = {TaskType::kWorker, 0};

std::string PrintCluster(const Cluster& cluster, TaskId task, const TfConfigOptions& options) {
  Json types = Json::object();
  for (const auto& [id, address] : cluster) {
    const bool is_seen =
        id.type != TaskType::kEvaluator || id == task || options.evaluator_in_cluster;
    if (is_seen) types[std::string(TypeName(id.type))].push_back(address);
  }
  return formats::PrintJson(types);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> GetTonyEnvironment(
    const JobSpec& spec, const Cluster& cluster, TaskId task, int session,
    const TfConfigOptions& options) {
  std::vector<std::pair<std::string, std::string>> environment = {
      {"CLUSTER_SPEC", PrintCluster(cluster, task, options)},
      {"JOB_NAME", std::string(TypeName(task.type))},
      {"TASK_INDEX", StrCat(task.index)},
      {"TASK_NUM", StrCat(spec.total() - spec.count(TaskType::kPs))},
      {"SESSION_ID", StrCat(session)},
      {"DISTRIBUTED_MODE", "GANG"}};
  const auto leader = spec.leader();
  const bool is_chief = leader ? task.type == *leader : task == kFirstWorker;
  if (is_chief) environment.emplace_back(kTonyChiefVariable, "true");
  return environment;
}

}  // namespace muster::job
