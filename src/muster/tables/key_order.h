// The order of keys in a checkpoint of a table that grows, and what part of it each of several
// servers has.
#pragma once

#include <cstdint>

namespace muster::tables {

// Keys may have any pattern, and are spread evenly over all numbers. No two keys get the same one,
// since the multiplier, that of Fibonacci hashing (Knuth, The Art of Computer Programming, 6.4), is
// odd.
constexpr uint64_t SpreadKey(int64_t key) {
  return static_cast<uint64_t>(key) * 0x9e3779b97f4a7c15;
}

// A checkpoint has keys in this order. It is that of the servers that have them, too, so that each
// server can write its keys by itself, and the file does not depend on how many servers there are.
constexpr bool IsKeyBefore(int64_t a, int64_t b) { return SpreadKey(a) < SpreadKey(b); }

// The server, of `servers`, that has the key.
constexpr int GetServerOfKey(int64_t key, int servers) {
  return static_cast<int>((SpreadKey(key) >> 32) * static_cast<uint64_t>(servers) >> 32);
}

}  // namespace muster::tables
