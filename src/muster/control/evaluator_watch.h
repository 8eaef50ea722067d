// EvaluatorWatch: follows an evaluator's work from outside. A tf.estimator evaluator looks for
// checkpoints until it finds the one of the last step, which may never be written; it does not
// report when it is done.
//
// Whether the newest checkpoint is evaluated is read from the model folder as tf.estimator keeps
// it: `checkpoint` names model.ckpt-STEP, and eval*/events.out.tfevents.* hold the metrics of each
// evaluated step. If no folder was given, it is found through the event file that the evaluator has
// open.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "muster/control/life_signs.h"
#include "muster/io/file_system.h"
#include "muster/job/reconcile.h"

namespace muster::control {

// One owner thread.
class EvaluatorWatch {
 public:
  struct Sample {
    int64_t now_nanos = 0;     // Clock's MonotonicNanos
    int64_t output_bytes = 0;  // since the evaluator's start
    double cpu_seconds = 0;    // of all its processes, since its start
  };

  // `model_dir`: "" if none is known. `files` must outlive the watch.
  EvaluatorWatch(std::string model_dir, int64_t now_nanos, io::FileSystem* files);

  // To be called about once a second. `processes` returns the evaluator's processes; it is called
  // while no folder is known.
  void Look(const Sample& sample, const std::function<std::vector<pid_t>()>& processes);
  // The evaluator's work as of the last Look().
  const job::EvaluatorWork& work() const { return work_; }

 private:
  void LookAtFolder(int64_t now_nanos, const std::function<std::vector<pid_t>()>& processes);
  std::optional<int64_t> EvaluatedStep();

  io::FileSystem* const files_;
  std::string model_dir_;
  job::EvaluatorWork work_;
  FolderState folder_;
  int64_t folder_look_at_ = 0;  // the next look is not before this
  int64_t changed_at_;          // last change of anything below the folder
  int64_t worked_at_;           // when it last did more than a process that only waits
  double cpu_then_ = 0;         // at worked_at_, as is output_then_
  int64_t output_then_ = 0;
  struct EventFile {
    int64_t size = -1;
    std::optional<int64_t> step;  // the last with a metric
  };
  std::map<std::string, EventFile> events_;
};

// The step in MODEL_DIR/checkpoint; none if there is no such file or it does not have the
// Estimator's form.
std::optional<int64_t> NewestCheckpoint(io::FileSystem& files, const std::string& model_dir);

}  // namespace muster::control
