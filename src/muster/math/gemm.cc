#include "muster/math/gemm.h"

namespace muster::math {

void Gemm(const Kernels& kernels, const GemmCall& call, AlignedBuffer& workspace) {
  if (call.m <= 0 || call.n <= 0) return;
  kernels.gemm(call, workspace.Reserve(kernels.gemm_workspace(call)));
}

void Gemm(const GemmCall& call, AlignedBuffer& workspace) {
  Gemm(ActiveKernels(), call, workspace);
}

}  // namespace muster::math
