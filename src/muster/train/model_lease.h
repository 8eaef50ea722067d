// ModelLease: ensures that one training at a time writes a model folder. MODEL_DIR/muster.lease
// names its process (docs/formats/model_lease.md).
//
// A training takes the lease before it reads the newest checkpoint, and checks before every change
// that it still has the lease (io/fenced_file_system.h). A chief that was suspended while a
// launcher replaced it is therefore fenced when it resumes, and changes nothing.
//
// A process cannot see whether a process on another machine is alive. Therefore the holder rewrites
// MODEL_DIR/muster.lease.beat every few seconds, from a separate thread; a process that finds both
// files unchanged for a minute of its own clock acquires the lease. No two machines' clocks are
// compared. The lease itself is written once, when it is acquired: a holder that was suspended
// cannot get it back by renewing it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/checkpoint/lease.h"
#include "muster/io/file_system.h"
#include "muster/process/identity.h"
#include "muster/train/loop/hook.h"

namespace muster::train {

// The writer's name as its launcher knows it; empty for a program that no launcher started.
struct WriterName {
  std::string job = {};
  std::string task = {};
  int64_t incarnation = 0;  // grows with each start of the task
};

struct LeaseOptions {
  double beat_seconds = checkpoint::kLeaseBeatSeconds;  // between two heartbeats of the holder
  // How long a lease of another machine must stay unchanged, by the clock of the process that wants
  // it, to be free.
  double expiry_seconds = checkpoint::kLeaseSeconds;
  process::ProcessIdentity process = process::ThisProcess();  // the process that acquires the lease
  std::function<void(const std::string& text)> note = {};     // informed of a wait; may be empty
  const std::atomic<bool>* stop = nullptr;                    // true ends the wait; may be null
  std::function<void(double seconds)> sleep = {};             // instead of sleeping; for tests
};

// Thread-safe.
class ModelLease {
 public:
  // Acquires the lease of `folder`, which must exist. The lease is free if no process has it, if
  // its process has ended, if its holder is an earlier incarnation of this task, or if its holder
  // is on another machine and has stopped renewing it: Acquire waits up to expiry_seconds to find
  // out. A lease that is never renewed does not expire. The previous holder is fenced from now on,
  // and its unfinished files are removed. FAILED_PRECONDITION says which process has the lease, and
  // what to do; ABORTED: another process acquired it at the same time; CANCELLED: `stop` became
  // true. `files` must outlive the lease.
  static absl::StatusOr<std::unique_ptr<ModelLease>> Acquire(io::FileSystem& files,
                                                             const std::string& folder,
                                                             const WriterName& name,
                                                             const Clock& clock,
                                                             const LeaseOptions& options = {});
  // Gives the lease back, unless another process has it.
  ~ModelLease();
  ModelLease(const ModelLease&) = delete;
  ModelLease& operator=(const ModelLease&) = delete;

  // ABORTED: another process has the lease and is named, or the lease was removed.
  absl::Status Check() const;
  // Like Check, but does not read the file while its identity is unchanged: for changes that are
  // frequent and destroy nothing. A network file system may answer this from a cache, up to a
  // minute late.
  absl::Status CheckIdentity() const;

 private:
  ModelLease(io::FileSystem& files, std::string path);
  absl::Status Beat();
  bool IsLastSeen(const io::FileInfo& info) const;
  void Run(const std::stop_token& stop, double beat_seconds);

  io::FileSystem& files_;
  const std::string path_;
  const std::string nonce_;  // makes each lease different
  std::string own_;          // the file's contents while this process has the lease
  int64_t beats_ = 0;        // used by the thread alone once it runs
  mutable std::mutex seen_mutex_;
  mutable io::FileInfo seen_;  // the file when its contents were last found to be own_
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::jthread thread_;  // renews the lease
};

// FAILED_PRECONDITION, as of ModelLease::Acquire, if a process of this machine has the lease of
// `folder`, which need not exist. Nothing is written: for a launcher whose tasks would all be
// refused.
absl::Status CheckNobodyTrainsHere(io::FileSystem& files, const std::string& folder);

// Checks the lease every second, so that a fenced process ends soon after it resumes, before it
// reports anything more. `lease` must outlive the hook.
std::unique_ptr<Hook> NewLeaseGuard(const ModelLease& lease);

}  // namespace muster::train
