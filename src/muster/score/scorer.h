// Scorer: a trained model that is loaded once and then predicts, for any number of threads at once.
// It has no data, hooks or progress of its own: a server, a plug-in of another program or an
// evaluation gives it batches.
//
//   MUSTER_ASSIGN_OR_RETURN(const auto scorer,
//                           Scorer::Open(files, {.weights = {.model_dir = "model"}, .lanes = 2}));
//   MUSTER_ASSIGN_OR_RETURN(auto rows, model::NewRowTransform(scorer->model(), false, false));
//   Scores scores;
//   MUSTER_RETURN_IF_ERROR(scorer->Score(batch, &scores));  // batch: made of records by `rows`
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/engine/engine.h"
#include "muster/engine/predictions.h"
#include "muster/features/batch.h"
#include "muster/io/file_system.h"
#include "muster/model/model.h"
#include "muster/score/inference.h"
#include "muster/train/weights/variables.h"

namespace muster::score {

// The result of one batch. It can be moved but not copied: predictions that are strings lie in
// `forward`.
struct Scores {
  Scores() = default;
  Scores(Scores&&) = default;
  Scores& operator=(Scores&&) = default;

  engine::Predictions predictions = {};
  engine::Forward forward = {};  // the logits and, if the batch has labels, the loss
};

struct ScorerOptions {
  WeightsSource weights = {};
  int lanes = 1;    // batches that are computed at the same time
  int threads = 1;  // threads of each lane
  engine::Precision precision = engine::Precision::kFloat32;
  std::string tensorflow = {};  // for an exported Keras model, as in model::BuildOptions
};

// An engine computes one batch at a time, in buffers of its own. So a Scorer has lanes, each with
// its own engine on its own thread; all lanes read the same weights and the same index of keys. A
// lane costs the memory of a batch's activations and, for some models of small embedding tables, up
// to 4 MB of products for each dense layer (engine/native/folded_dense.h). For an exported Keras
// model a lane is a muster-tensorflow process with its own copy of the dense weights.
//
// The predictions for a batch are the same bytes on all lanes, however many there are, and the same
// as Estimator::Predict's with the same number of threads.
class Scorer {
 public:
  // Builds the model and loads its weights. Afterwards `files` is not used, and the checkpoint may
  // be removed; the export of a Keras model in the model folder must stay, since each lane's
  // process reads it when the lane computes for the first time. Until Open has returned, a running
  // training may remove the checkpoint, unless the caller holds a lease on it (checkpoint/lease.h).
  // Errors are those of LoadModelDir, model::BuildModel and LoadWeights; INVALID_ARGUMENT if lanes
  // or threads are less than 1. Only Score reports that TensorFlow is missing.
  static absl::StatusOr<std::unique_ptr<Scorer>> Open(io::FileSystem& files,
                                                      const ScorerOptions& options);
  // No call of Score may be running when the Scorer is destroyed.
  Scorer(const Scorer&) = delete;
  Scorer& operator=(const Scorer&) = delete;

  // Replaces *scores, whose memory is reused. Thread-safe: each caller has its own `batch` and
  // `scores`. Calls wait for a free lane in the order in which they arrived. INVALID_ARGUMENT for a
  // batch that does not fit the model or has no rows; errors of the engine. After an error the
  // Scorer can be used as before.
  absl::Status Score(const features::FeatureBatch& batch, Scores* scores);

  // The model from which inputs, transforms and metrics are made. No lane uses its engine: a caller
  // that computes with it (as Metrics::Finish does for an exported model) must do so on one thread
  // at a time.
  const model::Model& model() const { return model_; }
  // Makes the predictions of Scores. Immutable; must outlive the Scores.
  const engine::Predictor& predictor() const { return predictor_; }
  // The checkpoint that was loaded; its `note` says why a newer one was skipped.
  const checkpoint::Restored& restored() const { return restored_; }

 private:
  struct Lane {
    model::Model model;
    ForwardPass forward;
    std::jthread thread = {};
  };
  // A call of Score; it lies on the caller's stack.
  struct Call {
    const features::FeatureBatch& batch;
    Scores& scores;
    absl::Status status = {};
    bool done = false;
    std::condition_variable ended = {};
  };

  Scorer(model::Model model, engine::Predictor predictor)
      : model_(std::move(model)), predictor_(std::move(predictor)) {}
  absl::Status AddLanes(const ScorerOptions& options);
  // Computes calls on the lane's thread until it is stopped.
  void Work(const std::stop_token& stop, Lane& lane);
  // Waits for the next call; null when stopped.
  Call* Next(const std::stop_token& stop, Lane& lane);
  absl::Status Compute(Lane& lane, const Call& call) const;

  const model::Model model_;
  const engine::Predictor predictor_;
  std::unique_ptr<train::Variables> variables_;  // of model_; not changed once they are loaded
  checkpoint::Restored restored_;

  std::mutex mutex_;  // guards calls_, and `status` and `done` of each Call
  std::condition_variable_any called_;
  std::deque<Call*> calls_;                   // not yet taken by a lane
  std::vector<std::unique_ptr<Lane>> lanes_;  // last: their threads use the members above
};

}  // namespace muster::score
