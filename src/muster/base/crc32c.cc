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
// What 1 << log2_zeros zero bytes after some data do to its state: 4 tables, one for each byte of
// the state. The effect is linear over GF(2); that of one zero bit, squared, is that of two.
using ShiftTable = std::array<std::array<uint32_t, 256>, 4>;

constexpr ShiftTable MakeShiftTable(int log2_zeros) {
  std::array<uint32_t, 32> columns{kReversedPolynomial};  // columns[i]: the effect on bit i
  for (int i = 1; i < 32; ++i) columns[i] = uint32_t{1} << (i - 1);
  const auto apply = [&](uint32_t state) {
    uint32_t result = 0;
    for (int i = 0; i < 32; ++i) result ^= (state >> i & 1) ? columns[i] : 0;
    return result;
  };
  for (int k = 0; k < log2_zeros + 3; ++k) {
    std::array<uint32_t, 32> squared{};
    for (int i = 0; i < 32; ++i) squared[i] = apply(columns[i]);
    columns = squared;
  }
  ShiftTable table{};
  for (int byte = 0; byte < 4; ++byte) {
    for (uint32_t value = 0; value < 256; ++value) table[byte][value] = apply(value << 8 * byte);
  }
  return table;
}

uint32_t Shift(const ShiftTable& table, uint32_t state) {
  return table[0][state & 0xff] ^ table[1][state >> 8 & 0xff] ^ table[2][state >> 16 & 0xff] ^
         table[3][state >> 24];
}

__attribute__((target("sse4.2"))) inline uint64_t ExtendWord(uint64_t state, const char* data) {
  uint64_t word;
  std::memcpy(&word, data, 8);
  return _mm_crc32_u64(state, word);
}

// The CPU's instruction takes 3 cycles and can start in each cycle. So three blocks are computed
// side by side and combined: the first is shifted over the second, and both over the third.
template <int kLog2Block>
__attribute__((target("sse4.2"))) uint32_t ExtendTriples(uint32_t state, const char** data,
                                                         size_t* size) {
  static constexpr ShiftTable kShift = MakeShiftTable(kLog2Block);
  constexpr size_t kBlock = size_t{1} << kLog2Block;
  for (; *size >= 3 * kBlock; *size -= 3 * kBlock, *data += 3 * kBlock) {
    const char* const p = *data;
    uint64_t a = state, b = 0, c = 0;
    for (size_t i = 0; i < kBlock; i += 8) {
      a = ExtendWord(a, p + i);
      b = ExtendWord(b, p + kBlock + i);
      c = ExtendWord(c, p + 2 * kBlock + i);
    }
    state = Shift(kShift, static_cast<uint32_t>(a)) ^ static_cast<uint32_t>(b);
    state = Shift(kShift, state) ^ static_cast<uint32_t>(c);
  }
  return state;
}

__attribute__((target("sse4.2"))) uint32_t ExtendHardware(uint32_t state, const char* data,
                                                          size_t size) {
  state = ExtendTriples<12>(state, &data, &size);
  state = ExtendTriples<8>(state, &data, &size);
  state = ExtendTriples<7>(state, &data, &size);
  state = ExtendTriples<6>(state, &data, &size);
  uint64_t wide = state;
  for (; size >= 8; size -= 8, data += 8) wide = ExtendWord(wide, data);
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
