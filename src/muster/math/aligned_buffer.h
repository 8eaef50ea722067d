// AlignedBuffer: floats that begin on a cache line, in memory that is reused from step to step.
#pragma once

#include <cstddef>
#include <memory>

namespace muster::math {

// One owner thread.
class AlignedBuffer {
 public:
  // Returns memory for at least this many floats, 64-byte aligned, valid until a call that asks for
  // more. The contents are lost when the buffer grows; throws std::bad_alloc when there is no
  // memory.
  float* Reserve(size_t floats);

 private:
  struct Free {
    void operator()(float* p) const;
  };
  std::unique_ptr<float, Free> memory_;
  size_t floats_ = 0;
};

}  // namespace muster::math
