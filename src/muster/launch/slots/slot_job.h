// SlotJob: a job whose processes are given by a provider of slots: its folder, and its coordinator
// in this process. The folder lies where the coordinator runs, on a file system of one machine. The
// job's state is in that folder, or, where the next coordinator may run on another machine, in one
// that both reach (shared_state.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/control/coordinator.h"
#include "muster/control/job_folder.h"
#include "muster/control/service.h"
#include "muster/io/file_system.h"
#include "muster/io/private_file_system.h"
#include "muster/launch/slots/shared_state.h"
#include "muster/launch/slots/slot_launcher.h"
#include "muster/launch/slots/state_watch.h"

namespace muster::launch::slots {

struct SlotJobOptions {
  control::ListenPlace listen = {};
  std::string certificates = {};  // the folder of `muster certs`; required for TLS
  // The coordinator certifies the keys of agents that ask for it (control/task_certificates.h), by
  // the authority's key, which must be in the folder `certificates` and is kept in the job's.
  bool certifies = false;
};

// How a coordinator runs whose job moves from machine to machine with its provider.
struct MovingJobOptions {
  std::string state = {};  // a folder on any file system; "": the job stays on this machine
  int64_t attempt = 0;     // of the provider
  std::string host = {};   // by which agents reach this machine
  double state_patience_seconds = 300;  // StateWatchOptions::patience_seconds
  std::string url_file = {};  // where agents find the coordinator's URL (--find-coordinator)
};

// Writes the first journal entry of a new job into the folder `state`, which must exist. Errors are
// those of Coordinator::New() and of the file system.
absl::Status WriteFirstState(io::FileSystem& files, const std::string& state,
                             const job::JobSpec& spec, const control::CoordinatorOptions& options);

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
  // The same for a job that moves. The folder has its token and the authority's certificate and key
  // (ca.pem, ca-key.pem), with which the coordinator makes its own certificate for `host`, and
  // those of tasks (control/task_certificates.h). It listens at every interface and at any port.
  // ABORTED if a later attempt has the job.
  static absl::StatusOr<std::unique_ptr<SlotJob>> RunMoving(const control::JobFolder& folder,
                                                            const MovingJobOptions& options);
  ~SlotJob();

  control::Service& service() { return *service_; }
  // Where agents and the provider reach the coordinator.
  std::string url() const { return url_.empty() ? service_->url() : url_; }
  // Writes the URL into the file of a job that moves, by which agents of the last coordinator find
  // this one. Call it once the provider knows the URL: it may start agents meanwhile.
  absl::Status PublishUrl();
  // ABORTED if the job moved on, or may have (state_watch.h): end then, as if killed. OK for a job
  // that stays. Does not wait.
  absl::Status CheckState() { return watch_ == nullptr ? absl::OkStatus() : watch_->status(); }
  // Tells the provider that the job has ended. Call it after service().finished().
  void SetFinal();
  // Whether the provider has received this and has no slot any more.
  bool emptied();

 private:
  SlotJob(control::JobLock lock, std::unique_ptr<io::FileSystem> files)
      : lock_(std::move(lock)), files_(std::move(files)) {}
  absl::Status Start(const control::JobFolder& folder, const SharedState& state,
                     const control::ListenPlace& place,
                     std::vector<control::ServiceRoute> routes = {});

  const control::JobLock lock_;
  const SystemClock clock_;
  const std::unique_ptr<io::FileSystem> files_;
  std::string url_, url_file_;  // of a job that moves
  std::unique_ptr<control::Journal> journal_;
  std::unique_ptr<SlotLauncher> launcher_;     // its route is the service's
  std::unique_ptr<StateWatch> watch_;          // null: the job does not move
  std::unique_ptr<control::Service> service_;  // uses the launcher until destroyed
};

}  // namespace muster::launch::slots
