// Which cores and GPUs of this machine each task gets.
#include <utility>

#include "muster/job/pod_template.h"
#include "muster/launch/local/local_launcher.h"
#include "muster/process/cpu_sets.h"
#include "muster/process/gpus.h"

namespace muster::launch::local {

absl::StatusOr<std::map<job::TaskId, Placement>> PlaceTasks(const job::JobSpec& spec) {
  std::vector<job::TaskId> tasks;
  std::vector<double> cpu_limits;
  std::vector<int> gpu_wishes;
  for (const auto& [type, replica] : spec.replicas) {
    MUSTER_ASSIGN_OR_RETURN(const job::Process process, job::ProcessOf(replica.pod_template));
    for (int index = 0; index < replica.replicas; ++index) {
      tasks.push_back({type, index});
      cpu_limits.push_back(process.cpus);
      gpu_wishes.push_back(process.gpus);
    }
  }
  MUSTER_ASSIGN_OR_RETURN(const auto available, process::AvailableCpus());
  MUSTER_ASSIGN_OR_RETURN(auto cpus, process::DealCpus(available, cpu_limits));
  const auto inherited =
      process::FindEnvironment("CUDA_VISIBLE_DEVICES", process::CurrentEnvironment());
  MUSTER_ASSIGN_OR_RETURN(auto gpus,
                          process::DealGpus(process::VisibleGpus(inherited, "/dev"), gpu_wishes));
  std::map<job::TaskId, Placement> placements;
  for (size_t i = 0; i < tasks.size(); ++i) {
    placements[tasks[i]] = {std::move(cpus[i]), std::move(gpus[i])};
  }
  return placements;
}

}  // namespace muster::launch::local
