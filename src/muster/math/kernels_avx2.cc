#if defined(__x86_64__)
#define MUSTER_KERNELS_NAME "avx2"
#define MUSTER_KERNELS_TABLE Avx2Kernels
#include "muster/math/kernels.inc"
#undef MUSTER_KERNELS_NAME
#undef MUSTER_KERNELS_TABLE
#endif
