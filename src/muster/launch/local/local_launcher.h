// Agents as processes of this machine: `muster agent`, each in a session of its own.
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

namespace muster::launch::local {

// What a task gets of the machine.
struct Placement {
  std::vector<int> cpus = {};            // empty: all
  std::optional<std::string> gpus = {};  // CUDA_VISIBLE_DEVICES; none: as inherited
};
// Cores and GPUs dealt out by the limits of the templates. FAILED_PRECONDITION when there are too
// few GPUs.
absl::StatusOr<std::map<job::TaskId, Placement>> PlaceTasks(const job::JobSpec& spec);

struct LocalLauncherOptions {
  control::JobFolder folder = {};
  std::string program = {};          // the muster binary
  std::string coordinator_url = {};  // for the agents
  std::map<job::TaskId, Placement> placements = {};
  // Called when Observe() has news, always from a thread of the launcher's and never within a call
  // of its owner's, who may hold locks that this takes.
  std::function<void()> on_change = {};
};

// What runs is known by the marks in the job's folder (control/incarnation.h), so that agents of an
// earlier coordinator are known too.
class LocalLauncher : public control::Launcher {
 public:
  static absl::StatusOr<std::unique_ptr<LocalLauncher>> Create(LocalLauncherOptions options);
  // Agents that it started and that still live are killed.
  ~LocalLauncher() override;

  void Start(const control::StartRequest& request) override;
  void Kill(job::TaskId task, int64_t incarnation) override;
  std::vector<job::TaskObservation> Observe() override;

 private:
  struct Agent {
    std::unique_ptr<process::Child> child;  // null: of an earlier coordinator
    process::Descriptor adopted;            // its pidfd
    int pid = 0;                            // of either
    std::optional<job::TaskEnd> end;        // with `ended`: none means gone
    bool ended = false;
  };

  explicit LocalLauncher(LocalLauncherOptions options) : options_(std::move(options)) {}
  std::vector<std::string> CommandFor(const control::StartRequest& request) const;
  absl::Status Spawn(const control::StartRequest& request, Agent* agent);
  void LookAt(const control::IncarnationId& id, Agent& agent);
  void TakeEnd(const control::IncarnationId& id, Agent& agent, const std::string& how);
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
