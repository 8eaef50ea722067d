// SlotJob: a job whose processes are given by a provider of slots: its folder, and its coordinator
// in this process. The folder lies where the coordinator runs, on a file system of one machine;
// another coordinator of the job starts from the same folder or a copy of its last state.
#pragma once

#include <memory>
#include <string>

#include "muster/base/clock.h"
#include "muster/control/coordinator.h"
#include "muster/control/job_folder.h"
#include "muster/control/service.h"
#include "muster/io/private_file_system.h"
#include "muster/launch/slots/slot_launcher.h"

namespace muster::launch::slots {

struct SlotJobOptions {
  control::ListenPlace listen = {};
  std::string certificates = {};  // the folder of `muster certs`; required for TLS
};

// Makes the folder, which must not exist yet, with the job's token, key, certificates and first
// journal entry. Errors are those of Coordinator::New() and UseCertificates(); after an error there
// is no folder.
absl::Status CreateSlotJob(const control::JobFolder& folder, const job::JobSpec& spec,
                           const control::CoordinatorOptions& options, const SlotJobOptions& slots);

// The running coordinator of a job; there is at most one for a folder. Its service has threads of
// its own, which call the launcher; SetFinal() and emptied() take the service's lock and may be
// called from any thread but those. One thread creates and destroys the object; the destructor
// stops the service and joins its threads.
class SlotJob {
 public:
  // Continues where the journal ends, at the port of the last coordinator. ALREADY_EXISTS if
  // another process is the coordinator; also errors of the journal, the token and the port.
  static absl::StatusOr<std::unique_ptr<SlotJob>> Run(const control::JobFolder& folder);
  ~SlotJob();

  control::Service& service() { return *service_; }
  // Tells the provider that the job has ended. Call it after service().finished().
  void SetFinal();
  // Whether the provider has received this and has no slot any more.
  bool emptied();

 private:
  explicit SlotJob(control::JobLock lock) : lock_(std::move(lock)) {}

  const control::JobLock lock_;
  const SystemClock clock_;
  const std::unique_ptr<io::FileSystem> files_ = io::NewPrivateFileSystem();
  std::unique_ptr<control::Journal> journal_;
  std::unique_ptr<SlotLauncher> launcher_;     // its route is the service's
  std::unique_ptr<control::Service> service_;  // uses the launcher until destroyed
};

}  // namespace muster::launch::slots
