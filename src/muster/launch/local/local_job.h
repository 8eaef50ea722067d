// A job on this machine: its folder, its coordinator, its agents.
#pragma once

#include <memory>
#include <string>

#include "muster/base/clock.h"
#include "muster/control/coordinator.h"
#include "muster/control/job_folder.h"
#include "muster/control/service.h"
#include "muster/io/local_file_system.h"
#include "muster/launch/local/local_launcher.h"

namespace muster::launch::local {

struct JobAccess {
  control::ListenPlace listen = {};
  std::string certificates = {};  // the folder of `muster certs`; wanted for TLS
};

// A new job's folder, token, certificates, files and first journal entry under `jobs`; nothing runs
// yet. Errors as MakeJobFolder(), Coordinator::New(), TakeCertificates(), PlanStaging(), Stage();
// after one there is no folder.
absl::StatusOr<control::JobFolder> CreateJob(const std::string& jobs, const job::JobSpec& spec,
                                             const control::CoordinatorOptions& options,
                                             const JobAccess& access = {});

// The coordinator of a job in this process, with its threads. At most one a job on this machine.
class LocalJob {
 public:
  // Goes on where the journal ends; agents that live are adopted. ALREADY_EXISTS when another
  // process is the coordinator; errors of journal and token. `program`: the muster binary.
  static absl::StatusOr<std::unique_ptr<LocalJob>> Run(const control::JobFolder& folder,
                                                       const std::string& program);
  ~LocalJob();

  control::Service& service() { return *service_; }

 private:
  explicit LocalJob(control::JobLock lock) : lock_(std::move(lock)) {}

  const control::JobLock lock_;
  const SystemClock clock_;
  const std::unique_ptr<io::FileSystem> files_ = io::NewLocalFileSystem();
  std::unique_ptr<control::Journal> journal_;
  std::unique_ptr<control::Service> service_;  // uses the launcher until it ends
  std::unique_ptr<LocalLauncher> launcher_;    // wakes the service until it ends
};

}  // namespace muster::launch::local
