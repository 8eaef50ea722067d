// ApplySink: applies gradients to weights by an optimizer that came with the model as a function
// (engine/updater.h). Such an optimizer takes the gradients of all variables at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/engine.h"
#include "muster/engine/updater.h"
#include "muster/train/weights/variables.h"

namespace muster::train {

// Keeps a step's gradients until Finish. Moving statistics go to `next` at once. One owner thread;
// the constructor's arguments must outlive the sink.
class ApplySink : public engine::GradientSink {
 public:
  ApplySink(engine::Updater& updater, const Variables& variables, engine::GradientSink& next);

  // Call before each Engine::Step, with the global step before it. Drops gradients that are still
  // kept from another step.
  void set_step(int64_t step) {
    step_ = step;
    any_ = false;
  }
  void Dense(int variable, std::span<const float> gradient) override;
  void Rows(int variable, std::span<const int32_t> rows, std::span<const float> gradient) override;
  bool WantsEntries(int /*variable*/) const override { return true; }
  void Statistic(int variable, std::span<const float> value) override;

  // Call after each Engine::Step. Applies the kept gradients; does nothing if the step gave none.
  // After an error weights and slots are unchanged.
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
