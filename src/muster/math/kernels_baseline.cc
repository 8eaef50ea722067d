#define MUSTER_KERNELS_NAME "baseline"
#define MUSTER_KERNELS_TABLE BaselineKernels
#include "muster/math/kernels.inc"
#undef MUSTER_KERNELS_NAME
#undef MUSTER_KERNELS_TABLE
