#include "muster/base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace muster {
namespace {

constexpr uint32_t kReversedPolynomial = 0x82f63b78;

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? kReversedPolynomial : 0);
    table[i] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

uint32_t ExtendTable(uint32_t state, const char* data, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    state = kTable[(state ^ static_cast<uint8_t>(data[i])) & 0xff] ^ (state >> 8);
  }
  return state;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t ExtendHardware(uint32_t state, const char* data,
                                                          size_t size) {
  uint64_t wide = state;
  for (; size >= 8; size -= 8, data += 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  state = static_cast<uint32_t>(wide);
  for (; size > 0; --size) state = _mm_crc32_u8(state, static_cast<uint8_t>(*data++));
  return state;
}
#endif

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, std::string_view bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~ExtendHardware(~crc, bytes.data(), bytes.size());
#endif
  return ~ExtendTable(~crc, bytes.data(), bytes.size());
}

}  // namespace muster
