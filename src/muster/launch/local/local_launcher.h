// LocalLauncher: runs agents as processes of this machine (`muster agent`), each in its own
// session.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "muster/base/mutex.h"
#include "muster/control/incarnation.h"
#include "muster/control/job_folder.h"
#include "muster/control/launcher.h"
#include "muster/process/child.h"
#include "muster/process/gpu_claim.h"

namespace muster::launch::local {

// The cores and GPUs of a task.
struct AssignedDevices {
  std::vector<int> cpus = {};            // empty: all
  std::optional<std::string> gpus = {};  // CUDA_VISIBLE_DEVICES; none: as inherited
};
struct DeviceAssignments {
  std::map<job::TaskId, AssignedDevices> tasks = {};
  std::vector<process::GpuClaim> gpus = {};  // held by the job and by each agent that it starts
};
// Assigns cores and GPUs by the limits of the templates, without GPUs that other jobs have unless
// `share_gpus`. `job` is the path of the job's folder, the name under which it claims GPUs.
// FAILED_PRECONDITION if there are too few GPUs.
absl::StatusOr<DeviceAssignments> AssignDevices(const job::JobSpec& spec, const std::string& job,
                                                bool share_gpus);

struct LocalLauncherOptions {
  control::JobFolder folder = {};
  std::string program = {};          // the muster binary
  std::string coordinator_url = {};  // for the agents
  DeviceAssignments devices = {};
  // Returns the command that is started for a request, instead of `muster agent` on this machine.
  // The command must take the incarnation's mark and write its end as an agent does. Called within
  // Start().
  std::function<std::vector<std::string>(const control::StartRequest&)> command = {};
  // Called when Observe() has news. It is always called from the launcher's own thread and never
  // within a call by the owner, which may hold locks that this callback takes.
  std::function<void()> on_change = {};
};

// It finds running agents by the marks in the job's folder (control/incarnation.h), and so it also
// finds those that an earlier coordinator started.
class LocalLauncher : public control::Launcher {
 public:
  // Starts the thread that watches agents and adopts those that have a mark in the folder. It
  // starts no agent. NOT_FOUND if the folder has no agents/; RESOURCE_EXHAUSTED or another code of
  // ErrnoStatus if the process has no descriptor left or the folder cannot be read. The owner must
  // hold the job's lock.
  static absl::StatusOr<std::unique_ptr<LocalLauncher>> Create(LocalLauncherOptions options);
  // Kills the agents that it started and that still run.
  ~LocalLauncher() override;

  void Start(const control::StartRequest& request) override;
  void Kill(job::TaskId task, int64_t incarnation) override;
  std::vector<job::TaskObservation> Observe() override;

  // Whether the agent of an incarnation that was observed as ended has written its end.
  bool HasWrittenEnd(const control::IncarnationId& id) const;
  // Waits, at most this many seconds, until the running agents have ended. Any thread.
  void WaitForEnds(double seconds);

 private:
  struct Agent {
    std::unique_ptr<process::Child> child;  // null: started by an earlier coordinator
    process::Descriptor adopted;            // its pidfd
    int pid = 0;                            // of either
    std::optional<job::TaskEnd> end;        // with `ended`: none means gone
    bool ended = false;
    bool written = false;  // the agent wrote the end
  };

  explicit LocalLauncher(LocalLauncherOptions options) : options_(std::move(options)) {}
  std::vector<std::string> CommandFor(const control::StartRequest& request) const;
  absl::Status Spawn(const control::StartRequest& request, Agent* agent);
  void LookAt(const control::IncarnationId& id, Agent& agent);
  void RecordEnd(const control::IncarnationId& id, Agent& agent, const std::string& how);
  void Forget();
  void Watch(const std::stop_token& stop);
  void Wake();
  void TellNews();

  const LocalLauncherOptions options_;
  std::map<control::IncarnationId, Agent> agents_;
  process::Descriptor wake_;  // an eventfd: the watched set has changed, or there is news
  std::atomic<bool> news_ = false;
  Mutex mutex_;
  std::vector<process::Descriptor> watched_ ABSL_GUARDED_BY(mutex_);  // pidfds
  std::jthread watcher_;
};

}  // namespace muster::launch::local
