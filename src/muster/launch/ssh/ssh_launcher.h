// SshLauncher: runs agents on other machines. For each of them there is a process `muster reach`
// beside the coordinator, which runs the agent over ssh. The launcher observes these processes for
// certain, but how an agent ended only by what its host reports.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/control/launcher.h"
#include "muster/launch/local/local_launcher.h"
#include "muster/launch/ssh/host_choice.h"
#include "muster/launch/ssh/hosts.h"
#include "muster/launch/ssh/started_tasks.h"

namespace muster::launch::ssh {

class SshLauncher : public control::Launcher {
 public:
  // `local`: the job's folder, this program, the coordinator's URL on this machine, on_change.
  // Tasks that an earlier coordinator has started are where it started them.
  static absl::StatusOr<std::unique_ptr<SshLauncher>> Create(local::LocalLauncherOptions local,
                                                             const job::JobSpec& spec, Hosts hosts);

  control::LauncherTraits traits() const override { return {.sees_ends = false}; }
  void Start(const control::StartRequest& request) override;
  void Kill(job::TaskId task, int64_t incarnation) override;
  std::vector<job::TaskObservation> Observe() override;
  std::string GetPlace(job::TaskId task, int64_t incarnation) const override;
  void Finish(double seconds) override { reaches_->WaitForEnds(seconds); }

 private:
  SshLauncher(const job::JobSpec& spec, Hosts hosts)
      : hosts_(std::move(hosts)), choice_(spec, hosts_.all.size()) {}
  std::vector<std::string> CommandFor(const control::StartRequest& request);
  const StartedTask* FindStarted(job::TaskId task, int64_t incarnation) const;
  double now() const { return static_cast<double>(clock_.MonotonicNanos()) * 1e-9; }

  const Hosts hosts_;
  const SystemClock clock_{};
  HostChoice choice_;
  StartedTasks started_;                           // as its file has them
  std::map<control::IncarnationId, bool> missed_;  // that never reached a host: disrupted or not
  control::JobFolder folder_;
  std::string program_, port_;
  std::unique_ptr<local::LocalLauncher> reaches_;  // last: it calls CommandFor
};

}  // namespace muster::launch::ssh
