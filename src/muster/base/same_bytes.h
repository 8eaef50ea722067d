// SameBytes: std::memcmp(a, b, size) == 0 without the call, for the few bytes of names and words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace muster {
namespace internal {

template <typename Word>
bool SameWord(const char* a, const char* b) {
  Word x, y;
  std::memcpy(&x, a, sizeof x);
  std::memcpy(&y, b, sizeof y);
  return x == y;
}

}  // namespace internal

// For sizes that are not a multiple of the word, the last word overlaps the one before.
inline bool SameBytes(const char* a, const char* b, size_t size) {
  if (size >= 8) {
    for (size_t i = 0; i + 8 < size; i += 8) {
      if (!internal::SameWord<uint64_t>(a + i, b + i)) return false;
    }
    return internal::SameWord<uint64_t>(a + size - 8, b + size - 8);
  }
  if (size >= 4) {
    return internal::SameWord<uint32_t>(a, b) &&
           internal::SameWord<uint32_t>(a + size - 4, b + size - 4);
  }
  for (size_t i = 0; i < size; ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

inline bool SameBytes(std::string_view a, std::string_view b) {
  return a.size() == b.size() && SameBytes(a.data(), b.data(), a.size());
}

}  // namespace muster
