#include "muster/math/gemm.h"

#include <cstdlib>
#include <new>

namespace muster::math {

void GemmWorkspace::Free::operator()(float* p) const { std::free(p); }

float* GemmWorkspace::Reserve(size_t floats) {
  if (floats > floats_) {
    const size_t bytes = (floats * sizeof(float) + 63) / 64 * 64;
    memory_.reset(static_cast<float*>(std::aligned_alloc(64, bytes)));
    if (!memory_) throw std::bad_alloc();
    floats_ = floats;
  }
  return memory_.get();
}

void Gemm(const Kernels& kernels, const GemmCall& call, GemmWorkspace& workspace) {
  if (call.m <= 0 || call.n <= 0) return;
  kernels.gemm(call, workspace.Reserve(kernels.gemm_workspace(call)));
}

void Gemm(const GemmCall& call, GemmWorkspace& workspace) {
  Gemm(ActiveKernels(), call, workspace);
}

}  // namespace muster::math
