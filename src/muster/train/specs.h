// TrainSpec and EvalSpec: what a training and an evaluation run on, and what they gave.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/metrics/metrics.h"
#include "muster/train/exporter.h"
#include "muster/train/hook.h"
#include "muster/train/input.h"
#include "muster/train/strategy.h"
#include "muster/train/training_watch.h"

namespace muster::train {

struct TrainSpec {
  InputSpec input = {};  // files, unless there is an input_fn
  InputFn input_fn = {};
  // The global step to stop at, or how many steps this run takes: one of them at most. Neither: to
  // the end of the data.
  std::optional<int64_t> max_steps = {};
  std::optional<int64_t> steps = {};
  bool fresh_data = false;  // begin the data anew instead of at the checkpoint's position
  // Shared, so that a caller can ask them afterwards.
  std::vector<std::shared_ptr<Hook>> hooks = {};
  std::vector<std::shared_ptr<CheckpointListener>> saving_listeners = {};
  // Those that train together with this one, each on its own shard of `input`; null: none. Must
  // outlive the training. Then the chief alone writes into model_dir.
  Peers* replicas = nullptr;
  // Where these may become fewer or more: the data is dealt to them in so many parts
  // (train/parts.h), cut as input.source.shard.by says. 0: the shard there is this one's.
  int parts = 0;
};

struct TrainResult {
  int64_t first_step = 0;  // > 0: resumed from a checkpoint
  int64_t step = 0;
  uint64_t examples = 0;  // of this run
  double seconds = 0;
  double loss = 0;              // mean over the examples of the last epoch that this run saw
  std::string checkpoint = {};  // prefix; "" when nothing was to do
  bool interrupted = false;
  std::string stop_reason = {};  // of the hook that ended the run; "" when none gave one
  uint64_t bad_records = 0;
  std::optional<RecordCounts> records = {};  // of the whole training; none: not known
  // Of replicas that may become fewer or more: who left or came at which step, in words, as far as
  // this process was there.
  std::vector<std::string> changes = {};
};

struct EvalSpec {
  InputSpec input = {};  // files, unless there is an input_fn
  InputFn input_fn = {};
  std::optional<int64_t> steps = 100;                // batches; none: all
  std::string name = {};                             // events go to eval/ or eval_<name>/
  std::vector<std::shared_ptr<Hook>> hooks = {};     // Session::mode is kEval
  std::optional<metrics::MetricsSpec> metrics = {};  // instead of the model file's
  // For TrainAndEvaluate:
  std::vector<std::shared_ptr<Exporter>> exporters = {};
  double start_delay_secs = 120;  // no evaluation earlier than this after the start
  double throttle_secs = 600;     // nor than this after the one before
  // Of the task of a cluster that evaluates: the training to follow; must outlive it.
  TrainingWatch* training = nullptr;
};

struct EvalResult {
  int64_t step = 0;  // global step of the checkpoint
  std::string checkpoint = {};
  uint64_t examples = 0;
  double seconds = 0;
  std::vector<metrics::NamedValue> metrics = {};  // with global_step last
};

struct PredictSpec {
  InputSpec input = {};  // files, unless there is an input_fn
  InputFn input_fn = {};
  std::vector<std::shared_ptr<Hook>> hooks = {};  // Session::mode is kPredict
};

// INVALID_ARGUMENT with tf.estimator's words for what it refuses.
absl::Status Validate(const TrainSpec& spec);
absl::Status Validate(const EvalSpec& spec);

// MODEL_DIR/eval or MODEL_DIR/eval_<name>.
std::string EvalFolder(const std::string& model_dir, const std::string& name);

}  // namespace muster::train
