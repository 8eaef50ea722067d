#include "muster/math/aligned_buffer.h"

#include <cstdlib>
#include <new>

namespace muster::math {

void AlignedBuffer::Free::operator()(float* p) const { std::free(p); }

float* AlignedBuffer::Reserve(size_t floats) {
  if (floats > floats_) {
    const size_t bytes = (floats * sizeof(float) + 63) / 64 * 64;
    memory_.reset(static_cast<float*>(std::aligned_alloc(64, bytes)));
    floats_ = memory_ ? floats : 0;
    if (!memory_) throw std::bad_alloc();
  }
  return memory_.get();
}

}  // namespace muster::math
