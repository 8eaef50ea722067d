// FinishedJob: a record that the chief of a job writes to the model folder when the training has
// ended (docs/formats/finished_job.md). A task of that job that is started again reads it and does
// not wait for the other tasks, which have ended.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

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

// Removes the record of an earlier end, if there is one: the model is trained further.
void RemoveFinishedJob(io::FileSystem& files, const std::string& model_dir);

// For a task that finds none of the others: they may have ended the job while it was away.
// Thread-safe. `files` must outlive it.
class FinishedJobWatch {
 public:
  FinishedJobWatch(io::FileSystem& files, std::string model_dir, FinishedJob job,
                   double seconds_between_looks = 2);
  ~FinishedJobWatch();  // waits for a look that is in progress
  // Returns has_finished(). Does not wait for a look: they are made on a thread of their own, which
  // the first call starts.
  bool Look();
  // Whether a look has found the record.
  bool has_finished() const;

 private:
  void Run(const std::stop_token& stop);

  io::FileSystem& files_;
  const std::string model_dir_;
  const FinishedJob job_;
  const double seconds_between_looks_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  bool has_finished_ = false;
  std::jthread thread_;
};

}  // namespace muster::train
