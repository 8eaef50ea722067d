// UpdateSink: applies gradients to weights in one process, each as soon as the engine gives it.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"

#include "muster/base/parallel.h"
#include "muster/engine/engine.h"
#include "muster/model/model.h"
#include "muster/train/weights/dynamic_tables.h"
#include "muster/train/weights/variables.h"

namespace muster::train {

// Applies the optimizer of a variable's group at once, and moves moving statistics by their
// momentum. Large variables are updated on `threads` threads, each of which takes a part of the
// elements or rows: the resulting bytes do not depend on the number of threads. One owner thread;
// `model` and `variables` must outlive the sink.
class UpdateSink : public engine::GradientSink {
 public:
  UpdateSink(const model::Model& model, const Variables& variables, int threads = 1)
      : model_(model), variables_(variables), crew_(threads) {}

  // Call before each Engine::Step, with the global step before it.
  void set_step(int64_t step) { step_ = step; }
  // `dynamic_tables` takes the gradients of tables that grow; it must outlive the sink. Null: the
  // model has no such tables.
  void set_dynamic_tables(DynamicTables* dynamic_tables) { dynamic_tables_ = dynamic_tables; }

  void Dense(int variable, std::span<const float> gradient) override;
  void Rows(int variable, std::span<const int32_t> rows, std::span<const float> gradient) override;
  bool WantsSquares(int variable) const override;
  void Statistic(int variable, std::span<const float> value) override;

 private:
  std::span<float> Weights(int variable) const;
  const optim::Optimizer& GetOptimizer(int variable) const;
  // Calls update(first, last) for parts of [0, n), where n counts items of `floats` floats each.
  // Every part except the last begins and ends at a multiple of `unit`.
  void InParts(size_t n, size_t floats, size_t unit,
               absl::FunctionRef<void(size_t, size_t)> update);

  const model::Model& model_;
  const Variables& variables_;
  ThreadCrew crew_;
  optim::TouchedRows touched_;
  int64_t step_ = 0;
  DynamicTables* dynamic_tables_ = nullptr;
};

}  // namespace muster::train
