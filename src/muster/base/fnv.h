// The hash FNV-1a of 64 bits (Fowler, Noll and Vo), for numbers that are written down: names and
// fingerprints. It is slow for long texts.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster {

inline constexpr uint64_t kFnvBasis = 0xcbf29ce484222325;

// Continues `hash` with `bytes`.
constexpr uint64_t Fnv1a(std::string_view bytes, uint64_t hash = kFnvBasis) {
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

// Continues `hash` with the 8 bytes of a number, the lowest first.
constexpr uint64_t Fnv1a(uint64_t number, uint64_t hash) {
  for (int i = 0; i < 8; ++i) hash = (hash ^ ((number >> (8 * i)) & 0xff)) * 0x100000001b3;
  return hash;
}

// Of the authors' list of test vectors.
static_assert(Fnv1a("foobar") == 0x85944171f73967e8);

}  // namespace muster
