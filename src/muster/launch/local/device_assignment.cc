// Assigns the cores and GPUs of this machine to tasks.
#include <numeric>
#include <utility>

#include "muster/job/pod_template.h"
#include "muster/launch/local/local_launcher.h"
#include "muster/process/cpu_sets.h"
#include "muster/process/gpus.h"

namespace muster::launch::local {

namespace {

// Returns names of GPUs for the tasks that want some: GPUs of this machine that nobody else has.
absl::StatusOr<std::vector<process::GpuClaim>> ChooseGpus(const std::vector<std::string>& visible,
                                                          const std::vector<int>& wishes,
                                                          const std::string& job, bool share) {
  // Reports invalid wishes, and too few GPUs in all.
  MUSTER_RETURN_IF_ERROR(process::DealGpus(visible, wishes).status());
  const int wanted = std::accumulate(wishes.begin(), wishes.end(), 0);
  if (!share) return process::ClaimGpus(visible, wanted, job);
  std::vector<process::GpuClaim> shared;
  for (int i = 0; i < wanted; ++i) shared.push_back({.gpu = visible[static_cast<size_t>(i)]});
  return shared;
}

}  // namespace

absl::StatusOr<DeviceAssignments> AssignDevices(const job::JobSpec& spec, const std::string& job,
                                                bool share_gpus) {
  std::vector<job::TaskId> tasks;
  std::vector<double> cpu_limits;
  std::vector<int> gpu_wishes;
  for (const auto& [type, replica] : spec.replicas) {
    MUSTER_ASSIGN_OR_RETURN(const job::Process process, job::ParseProcess(replica.pod_template));
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
  DeviceAssignments devices;
  MUSTER_ASSIGN_OR_RETURN(devices.gpus, ChooseGpus(process::VisibleGpus(inherited, "/dev"),
                                                   gpu_wishes, job, share_gpus));
  std::vector<std::string> names;
  for (const process::GpuClaim& claim : devices.gpus) names.push_back(claim.gpu);
  MUSTER_ASSIGN_OR_RETURN(auto gpus, process::DealGpus(names, gpu_wishes));
  for (size_t i = 0; i < tasks.size(); ++i) {
    devices.tasks[tasks[i]] = {std::move(cpus[i]), std::move(gpus[i])};
  }
  return devices;
}

}  // namespace muster::launch::local
