// StepRate: the learning rate of one step, that somebody else computes.
#pragma once

#include <cstdint>
#include <limits>

namespace muster::optim {

// Set by one thread, while no other reads.
class StepRate {
 public:
  void Set(int64_t step, float rate) {
    step_ = step;
    rate_ = rate;
  }
  // Of the step that was set last; of another one it is not known, and no number.
  float At(int64_t step) const {
    return step == step_ ? rate_ : std::numeric_limits<float>::quiet_NaN();
  }

 private:
  int64_t step_ = -1;
  float rate_ = 0;
};

}  // namespace muster::optim
