// A job on this machine: its folder, its coordinator, its agents.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "muster/base/clock.h"
#include "muster/control/coordinator.h"
#include "muster/control/job_folder.h"
#include "muster/control/service.h"
#include "muster/io/private_file_system.h"
#include "muster/launch/local/local_launcher.h"

namespace muster::launch::local {

// Settings of this machine rather than of the job. The journal keeps them.
struct LocalJobOptions {
  control::ListenPlace listen = {};
  std::string certificates = {};  // the folder of `muster certs`; required for TLS
  bool share_gpus = false;        // also assign GPUs that other jobs use
  bool isolate = false;           // in a network of its own (process/network_namespace.h)
  // The port of /healthz and /metrics, at the address of `listen` (control/service.h); 0: none.
  int metrics_port = 0;
  // For a job whose tasks run elsewhere: adds what else the job's folder needs, and makes the
  // certificates. It is called when the folder has its files and before the first journal entry
  // makes it a job. The tasks get no cores or GPUs of this machine, and run in a folder work/NAME
  // below the folder of their agents.
  std::function<absl::Status(const control::JobFolder&)> prepare = {};
};

// Makes the launcher of a job whose tasks run elsewhere.
using MakeLauncher = std::function<absl::StatusOr<std::unique_ptr<control::Launcher>>(
    LocalLauncherOptions, const job::JobSpec&)>;

// One of the journal's notes: "yes" for a job in a network of its own.
inline constexpr char kIsolatedNote[] = "isolated";

// Makes a new job's folder, token, certificates, files and first journal entry under `jobs`;
// nothing runs yet. Errors are those of MakeJobFolder(), Coordinator::New(), AssignDevices(),
// UseCertificates(), PlanStaging(), Stage(); after an error there is no folder.
absl::StatusOr<control::JobFolder> CreateJob(const std::string& jobs, const job::JobSpec& spec,
                                             const control::CoordinatorOptions& options,
                                             const LocalJobOptions& local = {});

// The coordinator of a job in this process, with its threads. At most one per job on this machine.
class LocalJob {
 public:
  // Continues where the journal ends; running agents are adopted. ALREADY_EXISTS if another process
  // is the coordinator; also errors of the journal, the token and AssignDevices(). `program`: the
  // muster binary. For jobs in a network of their own, call it before the process starts a thread.
  // `cancelled`: why the job is to end at once, without starting anything; "": it continues.
  // `make`: for a job whose tasks run elsewhere.
  static absl::StatusOr<std::unique_ptr<LocalJob>> Run(const control::JobFolder& folder,
                                                       const std::string& program,
                                                       const std::string& cancelled = "",
                                                       const MakeLauncher& make = {});
  ~LocalJob();

  // Calls control::Launcher::Finish(). Call it after the job's end, before its logs are read for
  // the last time.
  void Finish();

  control::Service& service() { return *service_; }

 private:
  explicit LocalJob(control::JobLock lock) : lock_(std::move(lock)) {}

  const control::JobLock lock_;
  const SystemClock clock_;
  const std::unique_ptr<io::FileSystem> files_ = io::NewPrivateFileSystem();
  std::unique_ptr<control::Journal> journal_;
  std::unique_ptr<control::Service> service_;    // uses the launcher until destroyed
  std::unique_ptr<control::Launcher> launcher_;  // wakes the service until destroyed
};

}  // namespace muster::launch::local
