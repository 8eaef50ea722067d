// TrainSpec, EvalSpec and PredictSpec: the inputs and settings of a training, an evaluation and a
// prediction; and their results.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/metrics/metrics.h"
#include "muster/train/input/input.h"
#include "muster/train/loop/exporter.h"
#include "muster/train/loop/hook.h"
#include "muster/train/loop/strategy.h"
#include "muster/train/loop/training_watch.h"

namespace muster::train {

struct TrainSpec {
  InputSpec input = {};  // files, unless there is an input_fn
  InputFn input_fn = {};
  // The global step to stop at, or the number of steps of this run: at most one of the two.
  // Neither: until the end of the data.
  std::optional<int64_t> max_steps = {};
  std::optional<int64_t> steps = {};
  bool fresh_data = false;  // begin at the start of the data, not at the checkpoint's position
  // Shared, so that a caller can query them afterwards.
  std::vector<std::shared_ptr<Hook>> hooks = {};
  std::vector<std::shared_ptr<CheckpointListener>> saving_listeners = {};
  // The replicas that train together with this one, each on its own shard of `input`; null: none.
  // Must outlive the training. With replicas, only the chief writes into model_dir.
  Peers* replicas = nullptr;
  // Called in the chief when the training has ended, with its last checkpoint, before it tells the
  // other replicas so: these end then. Not with an evaluator, for which a chief waits.
  std::function<void()> before_others_end = {};
  // If the number of replicas may change: the number of shards that the data is cut into
  // (train/input/shards.h), as input.source.shard.by says. 0: this replica reads
  // input.source.shard.
  int shards = 0;
  // With replicas, of data that grows: input.growth, whose segments the chief tells the others.
  std::shared_ptr<ToldSegments> segments = {};
};

struct TrainResult {
  int64_t first_step = 0;  // > 0: resumed from a checkpoint
  int64_t step = 0;
  uint64_t examples = 0;  // of this run
  double seconds = 0;
  double loss = 0;              // mean over the examples of the last epoch that this run saw
  std::string checkpoint = {};  // prefix; "" when there was nothing to do
  // The metrics of the training, over the same examples, if the model's step gives them.
  std::vector<metrics::NamedValue> metrics = {};
  bool interrupted = false;
  // An earlier run, or other replicas, had already trained on all data or done all steps: this run
  // had no record to train on, and `loss` has no meaning.
  bool nothing_left = false;
  std::string stop_reason = {};  // from the hook that ended the run; "" when none gave one
  uint64_t bad_records = 0;      // left out by this run, of all replicas
  std::optional<RecordCounts> records = {};  // of the whole training; none: not known
  // If the number of replicas may change: which replica left or joined at which step, in words, as
  // far as this process was running then.
  std::vector<std::string> changes = {};
};

// Called with each record that was left out, in the order in which they were read.
using RejectRecord = std::function<absl::Status(const data::BadRecord& record)>;

// Which evaluation is the best: the one with the strictly lowest or highest metric.
struct BestBy {
  std::string metric = "loss";
  bool higher_is_better = false;
};

struct EvalSpec {
  InputSpec input = {};  // files, unless there is an input_fn
  InputFn input_fn = {};
  RejectRecord reject = {};
  std::optional<int64_t> steps = 100;                // batches; none: all
  std::string name = {};                             // events go to eval/ or eval_<name>/
  std::vector<std::shared_ptr<Hook>> hooks = {};     // Session::mode is kEval
  std::optional<metrics::MetricsSpec> metrics = {};  // instead of the model file's
  // Whether the evaluation fails if its events cannot be written. A training reads the events of
  // its evaluations, so it needs them.
  bool needs_events = true;
  // True ends the evaluation with CANCELLED; it must outlive the evaluation.
  const std::atomic<bool>* stop = nullptr;
  // For TrainAndEvaluate, which fills in `stop`:
  std::vector<std::shared_ptr<Exporter>> exporters = {};
  BestBy best_by = {};            // decides which checkpoint is kept (checkpoint/best.h)
  double start_delay_secs = 120;  // no evaluation earlier than this after the start
  double throttle_secs = 600;     // no evaluation earlier than this after the previous one
  // If true, evaluates at the end of each epoch and of the training, instead of at those times.
  bool every_epoch = false;
  // In the evaluator task of a cluster: the training to follow. Must outlive the evaluation.
  TrainingWatch* training = nullptr;
};

// The loss and the metrics of a training over an epoch so far.
struct EpochValues {
  int64_t epoch = 0;                              // counted from 1
  std::vector<metrics::NamedValue> metrics = {};  // with "loss" last
};

// A training up to a checkpoint.
struct TrainingSoFar {
  std::optional<EpochValues> epoch = {};     // with EvalSpec::every_epoch
  std::optional<RecordCounts> records = {};  // of all of its runs, unless its data does not count
};

struct EvalResult {
  int64_t step = 0;  // global step of the checkpoint
  std::string checkpoint = {};
  uint64_t examples = 0;
  uint64_t bad_records = 0;  // left out
  double seconds = 0;
  std::vector<metrics::NamedValue> metrics = {};  // with global_step last
  std::optional<EpochValues> training = {};       // with EvalSpec::every_epoch
  // Of the training that evaluates its own checkpoint.
  std::optional<RecordCounts> trained_records = {};
  absl::Status events = {};  // why none were written (EvalSpec::needs_events)
};

struct PredictSpec {
  InputSpec input = {};  // files, unless there is an input_fn
  InputFn input_fn = {};
  RejectRecord reject = {};
  std::vector<std::shared_ptr<Hook>> hooks = {};  // Session::mode is kPredict
};

struct PredictResult {
  int64_t step = 0;  // global step of the checkpoint
  std::string checkpoint = {};
  uint64_t examples = 0;
  uint64_t bad_records = 0;  // left out
};

// INVALID_ARGUMENT with tf.estimator's words for what tf.estimator refuses.
absl::Status Validate(const TrainSpec& spec);
absl::Status Validate(const EvalSpec& spec);

// MODEL_DIR/eval or MODEL_DIR/eval_<name>.
std::string EvalFolder(const std::string& model_dir, const std::string& name);

}  // namespace muster::train
