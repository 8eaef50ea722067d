// ShortestFloat: a float in the fewest digits that read back as it, quickly.
#pragma once

#include <cstddef>

namespace muster {

inline constexpr size_t kMostFloatChars = 32;

// Writes what std::to_chars(to, to + kMostFloatChars, value) would write and returns the position
// after it; writes no terminating zero. Thread-safe.
char* ShortestFloat(float value, char* to);

}  // namespace muster
