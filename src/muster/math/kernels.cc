#include "muster/math/kernels.h"

#include "muster/math/kernel_tables.h"

namespace muster::math {
namespace {

struct Supported {
  const Kernels* tables[3];
  size_t count = 0;

  Supported() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) {
      tables[count++] = &Avx512Kernels();
    }
    if (avx2) tables[count++] = &Avx2Kernels();
#endif
    tables[count++] = &BaselineKernels();
  }
};

}  // namespace

std::span<const Kernels* const> SupportedKernels() {
  static const Supported kSupported;
  return {kSupported.tables, kSupported.count};
}

}  // namespace muster::math
