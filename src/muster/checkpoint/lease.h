// Lease: keeps a checkpoint from being removed while somebody reads it, over a shared folder.
//
// The holder writes PREFIX.lease-HOLDER beside the checkpoint, and writes it anew every few
// seconds. A Saver leaves a checkpoint alone while it finds such a file that has changed within
// kLeaseSeconds of its own clock: no two machines' clocks are compared. A holder that is killed
// leaves a file that stands still, and the checkpoint goes with one of the next saves.
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

// Of a reader. It has a thread of its own, which writes the file; the destructor removes it.
class Lease {
 public:
  // What an earlier incarnation of `holder` ("evaluator-0") has left in the folder is removed.
  // NOT_FOUND: the checkpoint ("DIR/model.ckpt-N") is gone; take another. `files` must outlive it.
  static absl::StatusOr<std::unique_ptr<Lease>> Take(io::FileSystem& files,
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
  const uint32_t nonce_;  // two leases of one holder differ, whatever their beats
  int64_t beats_ = 0;
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::jthread thread_;
};

// Of the one who removes checkpoints. One owner thread.
class LeaseWatch {
 public:
  // Whether somebody holds a lease on the checkpoint. `seconds`: now, of the caller's clock.
  // A file that is seen for the first time is one: its holder may be about to write it again.
  bool IsLeased(io::FileSystem& files, const std::string& prefix, double seconds);

 private:
  struct Seen {
    std::string text = {};
    double since = 0;
  };
  std::map<std::string, Seen> seen_;  // by path
};

// Whether `name` is that of a lease, and of which checkpoint: "model.ckpt-N", else "".
std::string LeasedBy(const std::string& name);

}  // namespace muster::checkpoint
