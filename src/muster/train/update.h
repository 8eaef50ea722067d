// UpdateSink: gradients to weights in one process, each as the engine gives it.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"

#include "muster/base/parallel.h"
#include "muster/engine/engine.h"
#include "muster/model/model.h"
#include "muster/train/grown_tables.h"
#include "muster/train/variables.h"

namespace muster::train {

// Applies the optimizer of a variable's group at once; moving statistics by their momentum. Large
// variables are updated on `threads` threads, each a part of the elements or rows: the bytes do not
// depend on how many. One owner thread; `model` and `variables` must outlive it.
class UpdateSink : public engine::GradientSink {
 public:
  UpdateSink(const model::Model& model, const Variables& variables, int threads = 1)
      : model_(model), variables_(variables), crew_(threads) {}

  // Before each Engine::Step: the global step before it.
  void set_step(int64_t step) { step_ = step; }
  // Takes gradients of tables that grow; must outlive this. Null: the model has none.
  void set_grown(GrownTables* grown) { grown_ = grown; }

  void Dense(int variable, std::span<const float> gradient) override;
  void Rows(int variable, std::span<const int32_t> rows, std::span<const float> gradient) override;
  bool WantsSquares(int variable) const override;
  void Statistic(int variable, std::span<const float> value) override;

 private:
  std::span<float> Weights(int variable) const;
  const optim::Optimizer& OptimizerOf(int variable) const;
  // Calls update(first, last) for parts of [0, n), n things of `floats` each; all but the last part
  // are multiples of `unit`.
  void InParts(size_t n, size_t floats, size_t unit,
               absl::FunctionRef<void(size_t, size_t)> update);

  const model::Model& model_;
  const Variables& variables_;
  ThreadCrew crew_;
  optim::TouchedRows touched_;
  int64_t step_ = 0;
  GrownTables* grown_ = nullptr;
};

}  // namespace muster::train
