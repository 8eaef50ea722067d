// The tables that kernels_*.cc define. Only kernels.cc may use them, as the processor's features
// must be checked first.
#pragma once

#include "muster/math/kernels.h"

namespace muster::math {

const Kernels& BaselineKernels();
#if defined(__x86_64__)
const Kernels& Avx2Kernels();
const Kernels& Avx512Kernels();
const TileKernels& AmxKernels();
#endif

}  // namespace muster::math
