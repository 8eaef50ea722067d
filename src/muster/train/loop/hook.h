// Hook: code that runs around the steps of a training or an evaluation, under the contract of
// tf.estimator's SessionRunHook.
//
//   Begin               once, before the weights exist; session.step is the checkpoint's
//   AfterCreateSession  weights, slots and position are set; again after each recovery
//   BeforeRun           before a batch is read
//   WhileWaiting        about once a second while data that grows has no further records yet,
//                       between BeforeRun and the batch; the session is as after the last step
//   AfterRun            after the batch's step, which session.step already counts
//   EndEpoch            after the last step of each epoch except the last one, before the next
//                       step; the session is as after that last step
//   End                 once, when the data, the steps or a stop request ended the loop
//
// When the data ends, AfterRun is skipped for the BeforeRun that found no batch, and End is called.
// After any error (of a hook, the input, the engine) no more hooks are called, not even End. There
// is one exception: if another task stays away, the session is as after the last step, and the
// chief calls SaveBeforeFailure.
//
// All calls are made on the thread of the loop, in the order of the hooks. A hook costs a virtual
// call before and after each step: guard expensive work with `if (session.step % n == 0)`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/checkpoint/saver.h"
#include "muster/data/reader.h"
#include "muster/formats/event.h"
#include "muster/io/file_system.h"
#include "muster/model/model.h"
#include "muster/train/input/record_counts.h"
#include "muster/train/loop/progress.h"
#include "muster/train/loop/run_config.h"
#include "muster/train/loop/step_trace.h"
#include "muster/train/weights/variables.h"

namespace muster::train {

class ToldSegments;     // train/input/told_segments.h
class TrainingMetrics;  // train/loop/training_metrics.h

enum class ModeKeys { kTrain, kEval, kPredict };

// The source of a training's newest weights and slots if Session::variables do not have them. One
// owner thread.
class StateSource {
 public:
  virtual ~StateSource() = default;
  // Fetches the weights and slots into the session's variables, or has them written into the files
  // of CheckpointState::rows, with the step, positions and records, all of one moment. ABORTED: a
  // task that holds a part of the state was lost; the variables are now incomplete, and the next
  // step recovers the state.
  virtual absl::Status FetchState() = 0;
};

// The position in the data of a training, and counts. The strategy writes this with each step, the
// loop when it opens or ends the data, and RestoreSession from a checkpoint.
struct DataState {
  // The position after the last batch trained on, if the input has positions.
  std::optional<data::Position> position = {};
  // If several replicas train: the position of each, by rank, serialised; or, if the number
  // of replicas may change, that of each shard. "" for a replica or shard without one.
  std::vector<std::string> positions = {};
  int shards = 0;  // of the data (train/input/shards.h); 0: each replica has one
  // TrainSpec::segments. The strategy tells the replicas which segment they take.
  ToldSegments* segments = nullptr;
  // The largest number of rows in a batch; 0: not known. The Estimator writes it.
  int batch_size = 0;
  // The counts of the whole training; none if they are not known.
  std::optional<RecordCounts> records = {};
  // Known when the data has ended: records dropped at its end. They are not in `records`, since a
  // training that continues from here with more epochs counts them then.
  int64_t dropped_at_end = 0;
  // Bad records left out so far by this process's input, and by those of all replicas, as reported
  // by the last step or at the end of the data. The loop writes the first, the strategy the second.
  uint64_t bad_records = 0;
  uint64_t all_bad_records = 0;
};

// The newest checkpoint. It is written by CheckpointSaver and by the code that restores a
// checkpoint.
struct CheckpointState {
  int64_t step = -1;
  std::string prefix = {};
  // The newest state must be saved after this step, because a task that holds a part of the state
  // was told to end. The strategy sets this, CheckpointSaver clears it.
  bool requested = false;
  // The tensors of the next save that other tasks have already written (StateSource::FetchState).
  checkpoint::RowFiles rows = {};
};

// Why the loop ends. The loop writes `interrupted`, and so does TrainAndEvaluate at the end.
struct EndingState {
  // RequestStop writes these two. A strategy that goes back to an earlier step clears them.
  bool requested = false;
  std::string reason = {};   // of the first request; "" when it gave none
  bool interrupted = false;  // by a signal; the same command continues the training
};

// The state that hooks see and share. The loop owns it and writes all of it, except where noted.
// Everything it refers to lives from Begin to End.
struct Session {
  ModeKeys mode = ModeKeys::kTrain;
  io::FileSystem& files;
  const Clock& clock;
  const RunConfig& config;
  const model::Model& model;
  Variables& variables;          // a hook may read; in AfterCreateSession also write (warm start)
  formats::EventWriter* events;  // of MODEL_DIR; null in evaluation
  Progress& progress;            // for Note()

  int64_t first_step = 0;  // the global step at which this run began
  int64_t max_steps = 0;   // the global step at which the training ends at the latest; 0: not known
  // The global step: steps whose gradients are in the weights. The strategy counts it.
  int64_t step = 0;
  // If the steps of other replicas count too: the value of `step` before the last step of this one.
  // The strategy writes it.
  int64_t previous_step = -1;
  int64_t evaluations = 0;  // of TrainAndEvaluate in this run, which counts them
  DataState data = {};
  CheckpointState checkpoint = {};
  EndingState ending = {};

  // The loss and the metrics of the training itself; null in evaluation. Owned and filled by the
  // loop.
  TrainingMetrics* metrics = nullptr;

  // If not null, the parts of the next step are recorded into it. Profiler writes this pointer.
  StepTrace* trace = nullptr;
  // The source from which the state must be fetched before a save. Null: `variables` have it.
  StateSource* state_source = nullptr;

  // Whether the last step reached a multiple of n, or went past it.
  bool Reached(int64_t n) const {
    return previous_step < 0 ? step % n == 0 : step / n != previous_step / n;
  }

  // Ends the loop after the hooks of this step. The first reason is kept; "" gives none.
  void RequestStop(const std::string& reason) {
    if (!ending.requested) ending.reason = reason;
    ending.requested = true;
  }
};

// The counts, including the records dropped at the end of the data.
inline std::optional<RecordCounts> AllRecords(const Session& session) {
  std::optional<RecordCounts> records = session.data.records;
  if (records) records->dropped += session.data.dropped_at_end;
  return records;
}

// The values of one step.
struct StepValues {
  // The minimised loss: that of the data plus regularisation. If it is not finite, no gradient was
  // applied, session.step did not change, and NanTensor decides what happens; without NanTensor the
  // batch is skipped. NaN in a prediction.
  double loss = 0;
  double data_loss = 0;
  int rows = 0;
  int64_t epoch = 0;  // of the batch, counted from 0
  // The amounts that the rows add to the states of the model's metrics (engine::StepResult). With
  // parameter servers they come from this replica's batch alone.
  std::vector<std::vector<float>> metric_states = {};
};

// One owner thread.
class Hook {
 public:
  virtual ~Hook() = default;
  virtual absl::Status Begin(Session&) { return absl::OkStatus(); }
  virtual absl::Status AfterCreateSession(Session&) { return absl::OkStatus(); }
  virtual absl::Status BeforeRun(Session&) { return absl::OkStatus(); }
  virtual absl::Status WhileWaiting(Session&) { return absl::OkStatus(); }
  virtual absl::Status AfterRun(Session&, const StepValues&) { return absl::OkStatus(); }
  virtual absl::Status EndEpoch(Session&) { return absl::OkStatus(); }
  virtual absl::Status End(Session&) { return absl::OkStatus(); }
  virtual absl::Status SaveBeforeFailure(Session&) { return absl::OkStatus(); }
};

// Code that runs around the checkpoints of a training (tf.estimator's CheckpointSaverListener).
// Called by the CheckpointSaver, on the thread of the loop; `step` is the checkpoint's. Each
// checkpoint gets BeforeSave, then AfterSave, before the next checkpoint's BeforeSave.
class CheckpointListener {
 public:
  virtual ~CheckpointListener() = default;
  virtual absl::Status Begin(Session&) { return absl::OkStatus(); }
  virtual absl::Status BeforeSave(Session&, int64_t /*step*/) { return absl::OkStatus(); }
  // Called when the save begins. True: the training waits for the disk, so that AfterSave is called
  // before the next step, as in tf.estimator. False: AfterSave is called after the first step that
  // ends after the save, when session.step and the weights have already advanced.
  virtual bool WaitsForSave(Session&, int64_t /*step*/) { return false; }
  // The checkpoint is on disk and is the newest. Returns true to stop the training.
  virtual absl::StatusOr<bool> AfterSave(Session&, int64_t /*step*/) { return false; }
  // Whether the training saves at the end of each epoch, and calls EndEpoch when that checkpoint is
  // on disk and is the newest.
  virtual bool WantsEpochs() const { return false; }
  virtual absl::Status EndEpoch(Session&, int64_t /*step*/) { return absl::OkStatus(); }
  // Called after the last checkpoint.
  virtual absl::Status End(Session&, int64_t /*step*/) { return absl::OkStatus(); }
};

}  // namespace muster::train
