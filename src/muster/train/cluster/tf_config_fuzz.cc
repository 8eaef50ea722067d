// Parses any bytes as TF_CONFIG: either they are refused and change nothing, or their task is
// inside their cluster. Accepted contents are printed and parsed again.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "muster/job/tf_config_contents.h"
#include "muster/train/cluster/tf_config.h"

namespace muster::train {
namespace {

void Expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "tf_config_fuzz: not true: %s\n", what);
  std::abort();
}

void Check(std::string_view json) {
  if (const auto contents = job::ParseTfConfig(json); contents.ok()) {
    const auto again = job::ParseTfConfig(job::PrintTfConfig(*contents));
    Expect(again.ok() && *again == *contents, "what is printed is parsed again");
  }
  RunConfig config;
  config.model_dir = "given";
  const absl::Status status = ApplyTfConfig(json, &config);
  if (!status.ok()) {
    Expect(absl::IsInvalidArgument(status), "a refusal is INVALID_ARGUMENT");
    Expect(status.message().substr(0, 10) == "TF_CONFIG:", "a refusal names TF_CONFIG");
    Expect(config.cluster.empty() && config.task_type == "worker" && config.task_id == 0 &&
               config.is_chief && config.master.empty() && config.num_worker_replicas == 1 &&
               config.service.empty(),
           "what is refused changes nothing");
    return;
  }
  Expect(config.task_id >= 0 && config.num_worker_replicas >= 0 && config.num_ps_replicas >= 0,
         "numbers are counts");
  if (config.cluster.empty()) return;
  const auto job = config.cluster.find(config.task_type);
  Expect(job != config.cluster.end(), "the task is of the cluster");
  Expect(static_cast<size_t>(config.task_id) < job->second.size(), "its index is inside the job");
  size_t tasks = 0;
  for (const auto& [name, addresses] : config.cluster) tasks += addresses.size();
  Expect(config.global_id_in_cluster.has_value() &&
             static_cast<size_t>(*config.global_id_in_cluster) < tasks,
         "its global id is inside the cluster");
}

}  // namespace
}  // namespace muster::train

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::train::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
