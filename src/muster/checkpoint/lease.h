// Lease: keeps a checkpoint in a shared folder from being removed while a process reads it.
//
// The holder writes PREFIX.lease-HOLDER beside the checkpoint, and rewrites it every few seconds. A
// Saver does not remove a checkpoint while it finds such a file that has changed within
// kLeaseSeconds of its own clock: clocks of two machines are never compared. A killed holder's file
// no longer changes, and the checkpoint is removed at one of the next saves.
// docs/formats/checkpoint.md.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::checkpoint {

inline constexpr double kLeaseSeconds = 60;
inline constexpr double kLeaseBeatSeconds = 10;

// Used by a reader. A separate thread rewrites the file; the destructor removes it.
class Lease {
 public:
  // Removes files that an earlier incarnation of `holder` ("evaluator-0") has left in the folder.
  // NOT_FOUND: the checkpoint ("DIR/model.ckpt-N") is gone; take another. `files` must outlive the
  // lease.
  static absl::StatusOr<std::unique_ptr<Lease>> Acquire(io::FileSystem& files,
                                                        const std::string& prefix,
                                                        const std::string& holder,
                                                        double beat_seconds = kLeaseBeatSeconds);
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

 private:
  Lease(io::FileSystem& files, std::string path);
  absl::Status Beat();
  void Run(const std::stop_token& stop, double beat_seconds);

  io::FileSystem& files_;
  const std::string path_;
  const uint32_t nonce_;  // makes each lease of a holder different
  int64_t beats_ = 0;
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::jthread thread_;
};

// Used by the process that removes checkpoints. One owner thread.
class LeaseWatch {
 public:
  // Whether anyone holds a lease on the checkpoint. `seconds`: the time now, by the caller's clock.
  // A file that is seen for the first time counts as a lease: its holder may be alive.
  bool IsLeased(io::FileSystem& files, const std::string& prefix, double seconds);

 private:
  struct Seen {
    std::string text = {};
    double since = 0;
  };
  std::map<std::string, Seen> seen_;  // by path
};

// Returns the checkpoint, "model.ckpt-N", if `name` is that of a lease file, else "".
std::string GetLeasedCheckpoint(const std::string& name);

}  // namespace muster::checkpoint
