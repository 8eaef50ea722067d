#include "muster/math/gemm.h"

namespace muster::math {
namespace {

// Sizes from which on, as measurements showed, tiles gain more than rounding, packing and setting
// them up costs.
bool Bf16Pays(const GemmCall& call) { return call.m >= 64 && call.n >= 64 && call.k >= 64; }

// Returns null if the product is to be computed with floats.
const TileKernels* TilesFor(const GemmCall& call) {
  return call.bf16 && Bf16Pays(call) ? ActiveTileKernels() : nullptr;
}

}  // namespace

bool SupportsBf16() { return ActiveTileKernels() != nullptr; }

void Gemm(const Kernels& kernels, const GemmCall& call, AlignedBuffer& workspace) {
  if (call.m <= 0 || call.n <= 0) return;
  kernels.gemm(call, workspace.Reserve(kernels.gemm_workspace(call)));
}

size_t PackedFloats(const GemmCall& call) {
  const TileKernels* const tiles = TilesFor(call);
  return tiles == nullptr ? 0 : tiles->packed_b_floats(call);
}

void PackForGemm(const GemmCall& call, int part, int parts, float* to) {
  ActiveTileKernels()->pack_b(call, part, parts, to);
}

void Gemm(const GemmCall& call, AlignedBuffer& workspace) {
  const TileKernels* const tiles = TilesFor(call);
  if (tiles != nullptr) {
    tiles->gemm(call, workspace.Reserve(tiles->gemm_workspace(call)));
  } else {
    Gemm(ActiveKernels(), call, workspace);
  }
}

}  // namespace muster::math
