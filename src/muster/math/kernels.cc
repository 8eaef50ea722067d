#include "muster/math/kernels.h"

#include <cstdlib>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "muster/math/kernel_tables.h"

namespace muster::math {
namespace {

// The instruction sets; each one includes all before it.
constexpr std::string_view kInstructions[] = {"baseline", "avx2", "avx512", "amx"};
enum Level { kBaseline, kAvx2, kAvx512, kAmx };

// Returns the highest level that MUSTER_INSTRUCTIONS allows.
Level AllowedLevel() {
  const char* const text = std::getenv("MUSTER_INSTRUCTIONS");
  for (int level = kBaseline; text != nullptr && level <= kAmx; ++level) {
    if (kInstructions[level] == text) return static_cast<Level>(level);
  }
  return kAmx;
}

#if defined(__x86_64__)
// Linux gives tile registers only to a process that asks for them: arch_prctl(2),
// ARCH_REQ_XCOMP_PERM.
bool AskForTiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// May only be called if SupportedKernels() has found AVX-512.
bool HasTiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;
  if ((d & kAmxBf16) == 0 || (d & kAmxTile) == 0) return false;
  if (!__get_cpuid_count(7, 1, &a, &b, &c, &d)) return false;
  constexpr unsigned kAvx512Bf16 = 1u << 5;
  return (a & kAvx512Bf16) != 0 && AskForTiles();
}
#endif

struct Supported {
  const Kernels* tables[3];
  size_t count = 0;

  Supported() {
#if defined(__x86_64__)
    const Level allowed = AllowedLevel();
    __builtin_cpu_init();
    const bool avx2 =
        allowed >= kAvx2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2 && allowed >= kAvx512 && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw")) {
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

const TileKernels* ActiveTileKernels() {
#if defined(__x86_64__)
  static const bool kHasTiles =
      AllowedLevel() == kAmx && &ActiveKernels() == &Avx512Kernels() && HasTiles();
  return kHasTiles ? &AmxKernels() : nullptr;
#else
  return nullptr;
#endif
}

const char* UnknownInstructions() {
  const char* const text = std::getenv("MUSTER_INSTRUCTIONS");
  if (text == nullptr) return nullptr;
  for (const std::string_view known : kInstructions) {
    if (known == text) return nullptr;
  }
  return text;
}

}  // namespace muster::math
