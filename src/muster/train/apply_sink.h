// ApplySink: gradients to weights by the optimizer that came with the model as a function
// (engine/updater.h), which takes those of all variables at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/engine.h"
#include "muster/engine/updater.h"
#include "muster/train/variables.h"

namespace muster::train {

// Keeps a step's gradients until Finish. Moving statistics go to `next` at once. One owner thread;
// what it is made of must outlive it.
class ApplySink : public engine::GradientSink {
 public:
  ApplySink(engine::Updater& updater, const Variables& variables, engine::GradientSink& next);

  // Before each Engine::Step: the global step before it. What is kept of another one is forgotten.
  void set_step(int64_t step) {
    step_ = step;
    any_ = false;
  }
  void Dense(int variable, std::span<const float> gradient) override;
  void Rows(int variable, std::span<const int32_t> rows, std::span<const float> gradient) override;
  bool WantsEntries(int /*variable*/) const override { return true; }
  void Statistic(int variable, std::span<const float> value) override;

  // After each Engine::Step that gave gradients, or none. Weights and slots are as they were after
  // an error.
  absl::Status Finish();

 private:
  struct Kept {
    std::vector<float> values;
    std::vector<int32_t> rows;
  };

  engine::Updater& updater_;
  const Variables& variables_;
  engine::GradientSink& next_;
  int64_t step_ = 0;
  std::vector<Kept> kept_;  // by variable
  bool any_ = false;
};

}  // namespace muster::train
