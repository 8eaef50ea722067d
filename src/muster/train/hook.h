// Hook: what happens around the steps of a training or an evaluation, under the contract of
// tf.estimator's SessionRunHook.
//
//   Begin               once, before weights are there; session.step is the checkpoint's
//   AfterCreateSession  weights, slots and position stand; again after each recovery
//   BeforeRun           before a batch is read
//   AfterRun            after its step; session.step counts it
//   End                 once, when the data, the steps or a stop request ended the loop
//
// When the data ends, AfterRun is skipped for the BeforeRun that found no batch, and End is called.
// On any error (of a hook, the input, the engine) nothing more is called, End neither.
//
// All calls come on the thread of the loop, in the order of the hooks. A hook costs a virtual call
// before and after each step: what is dear belongs behind `if (session.step % n == 0)`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/data/reader.h"
#include "muster/formats/event.h"
#include "muster/io/file_system.h"
#include "muster/model/model.h"
#include "muster/train/progress.h"
#include "muster/train/record_counts.h"
#include "muster/train/run_config.h"
#include "muster/train/step_trace.h"
#include "muster/train/variables.h"

namespace muster::train {

enum class ModeKeys { kTrain, kEval, kPredict };

// What hooks see and share. The loop owns it and writes all but what is said below; everything it
// refers to lives from Begin to End.
struct Session {
  ModeKeys mode = ModeKeys::kTrain;
  io::FileSystem& files;
  const Clock& clock;
  const RunConfig& config;
  const model::Model& model;
  Variables& variables;          // a hook may read; in AfterCreateSession also write (warm start)
  formats::EventWriter* events;  // of MODEL_DIR; null in evaluation
  Progress& progress;            // for Note()
  int64_t first_step = 0;        // the global step at which this run began
  int64_t step = 0;              // the global step: steps whose gradients are in the weights
  int64_t previous_step = -1;    // where others' steps count too: `step` before the last one here
  int64_t saved_step = -1;       // of the newest checkpoint; CheckpointSaver writes it
  std::string checkpoint = {};   // its prefix; CheckpointSaver writes it
  int64_t evaluations = 0;       // of TrainAndEvaluate in this run, which counts them
  // Behind the last batch trained on, where the input has positions.
  std::optional<data::Position> position = {};
  // The same of each replica by rank, serialised, where several train, or of each part of the data
  // where that is cut into parts; "" for one without.
  std::vector<std::string> positions = {};
  int parts = 0;  // of the data (train/parts.h); 0: each replica has a shard of its own
  // Of the whole training; none where they are not known.
  std::optional<RecordCounts> records = {};
  // Known when the data has ended: dropped, and not in `records`, since a training of more epochs
  // that goes on from here counts them then.
  int64_t dropped_at_end = 0;
  // Not null: the loop records the parts of the next step into it (Profiler).
  StepTrace* trace = nullptr;

  // Where weights and slots are not here, but on parameter servers: brings them, step and positions
  // of one moment. Called before they are saved; empty elsewhere.
  std::function<absl::Status()> fetch_state = {};

  // Whether the last step reached a multiple of n, or went past it.
  bool Reached(int64_t n) const {
    return previous_step < 0 ? step % n == 0 : step / n != previous_step / n;
  }

  // The loop ends after the hooks of this step. The first reason is kept; "" gives none.
  void RequestStop(const std::string& reason) {
    if (!stop_requested) stop_reason = reason;
    stop_requested = true;
  }
  bool stop_requested = false;
  bool interrupted = false;  // by a signal; the same command continues the training
  std::string stop_reason = {};
};

// With those that were dropped at the end.
inline std::optional<RecordCounts> AllRecords(const Session& session) {
  std::optional<RecordCounts> records = session.records;
  if (records) records->dropped += session.dropped_at_end;
  return records;
}

// One step's outcome.
struct StepValues {
  // With regularisation: what is minimised. Not finite: no gradient was given, session.step did not
  // move, and NanTensor decides; without it the batch is passed over. NaN in a prediction.
  double loss = 0;
  double data_loss = 0;
  int rows = 0;
  int64_t epoch = 0;  // of the batch, counted from 0
};

// One owner thread.
class Hook {
 public:
  virtual ~Hook() = default;
  virtual absl::Status Begin(Session&) { return absl::OkStatus(); }
  virtual absl::Status AfterCreateSession(Session&) { return absl::OkStatus(); }
  virtual absl::Status BeforeRun(Session&) { return absl::OkStatus(); }
  virtual absl::Status AfterRun(Session&, const StepValues&) { return absl::OkStatus(); }
  virtual absl::Status End(Session&) { return absl::OkStatus(); }
};

// What happens around the checkpoints of a training (tf.estimator's CheckpointSaverListener).
// Called by the CheckpointSaver, on the thread of the loop; `step` is the checkpoint's. For each
// checkpoint BeforeSave, then AfterSave, before the next one's BeforeSave.
class CheckpointListener {
 public:
  virtual ~CheckpointListener() = default;
  virtual absl::Status Begin(Session&) { return absl::OkStatus(); }
  virtual absl::Status BeforeSave(Session&, int64_t /*step*/) { return absl::OkStatus(); }
  // Asked when the save begins. True: the training waits for the disk, so that AfterSave comes
  // before the next step, as in tf.estimator. False: it comes behind the first step that ends after
  // the save did, and session.step and the weights have moved on.
  virtual bool WaitsForSave(Session&, int64_t /*step*/) { return false; }
  // The checkpoint is on disk, and the newest there. True: stop training.
  virtual absl::StatusOr<bool> AfterSave(Session&, int64_t /*step*/) { return false; }
  // After the last checkpoint.
  virtual absl::Status End(Session&, int64_t /*step*/) { return absl::OkStatus(); }
};

}  // namespace muster::train
