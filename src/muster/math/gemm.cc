#include "muster/math/gemm.h"

namespace muster::math {
namespace {

// Where rounding, packing and setting up tiles cost less than they gain: measured.
bool Bf16Pays(const GemmCall& call) { return call.m >= 64 && call.n >= 64 && call.k >= 64; }

}  // namespace

bool SupportsBf16() { return ActiveTileKernels() != nullptr; }

void Gemm(const Kernels& kernels, const GemmCall& call, AlignedBuffer& workspace) {
  if (call.m <= 0 || call.n <= 0) return;
  kernels.gemm(call, workspace.Reserve(kernels.gemm_workspace(call)));
}

void Gemm(const GemmCall& call, AlignedBuffer& workspace) {
  const TileKernels* const tiles = call.bf16 && Bf16Pays(call) ? ActiveTileKernels() : nullptr;
  if (tiles != nullptr) {
    tiles->gemm(call, workspace.Reserve(tiles->gemm_workspace(call)));
  } else {
    Gemm(ActiveKernels(), call, workspace);
  }
}

}  // namespace muster::math
