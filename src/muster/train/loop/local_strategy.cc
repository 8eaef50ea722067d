#include "muster/train/loop/local_strategy.h"

#include <cmath>
#include <span>

namespace muster::train {
namespace {

// Forwards gradients, and records how long that took.
class TracedSink : public engine::GradientSink {
 public:
  TracedSink(engine::GradientSink& sink, StepTrace* trace) : sink_(sink), trace_(trace) {}
  void Dense(int variable, std::span<const float> gradient) override {
    const TraceScope scope(trace_, "update");
    sink_.Dense(variable, gradient);
  }
  void Rows(int variable, std::span<const int32_t> rows, std::span<const float> gradient) override {
    const TraceScope scope(trace_, "update");
    sink_.Rows(variable, rows, gradient);
  }
  bool WantsSquares(int variable) const override { return sink_.WantsSquares(variable); }
  bool WantsEntries(int variable) const override { return sink_.WantsEntries(variable); }
  void Statistic(int variable, std::span<const float> value) override {
    const TraceScope scope(trace_, "update");
    sink_.Statistic(variable, value);
  }

 private:
  engine::GradientSink& sink_;
  StepTrace* const trace_;
};

}  // namespace

absl::Status LocalStrategy::Open() {
  if (!HasDynamicTables(session_.model.spec)) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(
      dynamic_tables_,
      DynamicTables::ForTraining(session_.model, session_.variables, session_.config.seed));
  update_.set_dynamic_tables(dynamic_tables_.get());
  return absl::OkStatus();
}

absl::Status LocalStrategy::FetchState() {
  if (dynamic_tables_ != nullptr) dynamic_tables_->CopyImages();
  return absl::OkStatus();
}

void LocalStrategy::DataOpened(const BatchSource& input) {
  has_positions_ = input.has_positions();
  session_.data.positions.clear();
}

absl::StatusOr<Strategy::Result> LocalStrategy::Run(const InputBatch* batch, Stop /*stop*/) {
  if (batch == nullptr) return Result{.outcome = Outcome::kOver};
  MUSTER_RETURN_IF_ERROR(update_.Begin());
  const TraceScope scope(session_.trace, "forward-backward");
  MUSTER_ASSIGN_OR_RETURN(engine::StepResult step, Compute(batch->features));
  MUSTER_RETURN_IF_ERROR(update_.Finish());
  const bool finite = std::isfinite(step.loss);
  if (finite) ++session_.step;
  const int rows = batch->features.rows;
  Count(rows, finite, batch->dropped, &session_.data.records);
  if (has_positions_) session_.data.position = batch->position;
  return Result{.outcome = finite ? Outcome::kDone : Outcome::kNotFinite,
                .values = {.loss = step.loss,
                           .data_loss = step.data_loss,
                           .rows = rows,
                           .epoch = batch->epoch,
                           .metric_states = std::move(step.metric_states)}};
}

absl::StatusOr<engine::StepResult> LocalStrategy::Compute(const features::FeatureBatch& batch) {
  const features::FeatureBatch* features = &batch;
  std::span<const engine::VariableView> views = session_.variables.views();
  if (dynamic_tables_ != nullptr) {
    MUSTER_ASSIGN_OR_RETURN(features, dynamic_tables_->Renumber(batch));
    views = dynamic_tables_->views();
  }
  engine::GradientSink* sink = &update_.sink();
  TracedSink traced(*sink, session_.trace);
  if (session_.trace != nullptr) sink = &traced;
  return session_.model.engine->Step(
      views, *features, {.seed = session_.config.seed, .step = session_.step, .replica = 0}, *sink);
}

}  // namespace muster::train
