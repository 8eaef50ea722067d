// FinishedJob: a record that the chief of a job writes to the model folder when the training has
// ended (docs/formats/finished_job.md). A task of that job that is started again reads it and does
// not wait for the other tasks, which have ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::train {

struct FinishedJob {
  std::string job = {};
  // The settings that were the same in all tasks (base/agreement.h), and the rules that decide when
  // training ends.
  std::string agreement = {};
};

// Writes the record; it names the folder's newest checkpoint. NOT_FOUND if there is no checkpoint.
absl::Status WriteFinishedJob(io::FileSystem& files, const std::string& model_dir,
                              const FinishedJob& finished);

// Whether `job` has ended in this folder and the newest checkpoint is still the one it ended with.
// A record that cannot be parsed counts as absent.
bool HasFinished(io::FileSystem& files, const std::string& model_dir, const FinishedJob& job);

// For a task that finds none of the others: they may have ended the job while it was away.
// Thread-safe. `files` and `clock` must outlive it.
class FinishedJobWatch {
 public:
  FinishedJobWatch(io::FileSystem& files, const Clock& clock, std::string model_dir,
                   FinishedJob job);
  // HasFinished, read once in two seconds at most. Remains true.
  bool HasFinished();
  // Whether a call has returned true.
  bool has_seen_end() const { return has_seen_end_; }

 private:
  io::FileSystem& files_;
  const Clock& clock_;
  const std::string model_dir_;
  const FinishedJob job_;
  std::atomic<int64_t> next_look_nanos_ = 0;
  std::atomic<bool> has_seen_end_ = false;
};

}  // namespace muster::train
