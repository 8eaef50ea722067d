// StepRate: the learning rate of one step, computed elsewhere.
#pragma once

#include <cstdint>
#include <limits>

namespace muster::optim {

// One thread sets it, while no other thread reads it.
class StepRate {
 public:
  void Set(int64_t step, float rate) {
    step_ = step;
    rate_ = rate;
  }
  // The rate of the step that was set last; NaN for any other step.
  float At(int64_t step) const {
    return step == step_ ? rate_ : std::numeric_limits<float>::quiet_NaN();
  }

 private:
  int64_t step_ = -1;
  float rate_ = 0;
};

}  // namespace muster::optim
