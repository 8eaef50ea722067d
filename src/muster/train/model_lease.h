// ModelLease: one training at a time writes a model folder. MODEL_DIR/muster.lease names who does
// (docs/formats/model_lease.md).
//
// A training takes the lease before it reads the newest checkpoint, and asks before everything that
// it changes whether it still has it (io/fenced_file_system.h). So a chief that slept while a
// launcher put another in its place finds itself fenced when it wakes, and changes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "muster/base/status.h"
#include "muster/io/file_system.h"
#include "muster/train/hook.h"

namespace muster::train {

// As its launcher knows it; of a program that none started: nothing.
struct WriterName {
  std::string job = {};
  std::string task = {};
  int64_t incarnation = 0;  // of one task's starts, the later has the greater
};

// Thread-safe.
class ModelLease {
 public:
  // `folder` exists. The lease is free where nobody has it, its process is no more, or it is of an
  // earlier incarnation of this task: that one is fenced from now on, and its unfinished files
  // removed. FAILED_PRECONDITION: who has it, and what to do. `files` must outlive it.
  static absl::StatusOr<std::unique_ptr<ModelLease>> Take(io::FileSystem& files,
                                                          const std::string& folder,
                                                          const WriterName& name);
  // Gives it back, unless it is another's.
  ~ModelLease();
  ModelLease(const ModelLease&) = delete;
  ModelLease& operator=(const ModelLease&) = delete;

  // ABORTED: another has it, which is named.
  absl::Status Check() const;

 private:
  ModelLease(io::FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}

  io::FileSystem& files_;
  const std::string path_;
  std::string own_;  // the file's contents while it is this one's
};

// Asks it every second, so that who was fenced ends soon after it wakes, before it reports anything
// more. `lease` must outlive it.
std::unique_ptr<Hook> NewLeaseGuard(const ModelLease& lease);

}  // namespace muster::train
