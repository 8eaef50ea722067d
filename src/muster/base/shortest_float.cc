#include "muster/base/shortest_float.h"

#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>

namespace muster {
namespace {

constexpr uint64_t kPowersOfTen[] = {
    1,         10,         100,         1'000,         10'000,        100'000,
    1'000'000, 10'000'000, 100'000'000, 1'000'000'000, 10'000'000'000};

// kDecimals[t] is the smallest number of decimals with 10^decimals >= 2^t.
struct DecimalsTable {
  uint8_t of[34] = {};
  constexpr DecimalsTable() {
    for (int t = 0, decimals = 0; t < 34; ++t) {
      while (kPowersOfTen[decimals] < uint64_t{1} << t) ++decimals;
      of[t] = static_cast<uint8_t>(decimals);
    }
  }
};
constexpr DecimalsTable kDecimals;

// Writes a number below 100 as two digits, "00" to "99".
struct PairsTable {
  char of[200] = {};
  constexpr PairsTable() {
    for (int i = 0; i < 100; ++i) {
      of[2 * i] = static_cast<char>('0' + i / 10);
      of[2 * i + 1] = static_cast<char>('0' + i % 10);
    }
  }
};
constexpr PairsTable kPairs;

void WritePair(uint32_t number, char* to) { std::memcpy(to, kPairs.of + 2 * number, 2); }

// Writes a number as ten digits.
void WriteDigits(uint64_t number, char* to) {
  const auto high = static_cast<uint32_t>(number / 100'000'000);
  const auto low = static_cast<uint32_t>(number % 100'000'000);
  const uint32_t first = low / 10'000, second = low % 10'000;
  WritePair(high, to);
  WritePair(first / 100, to + 2);
  WritePair(first % 100, to + 4);
  WritePair(second / 100, to + 6);
  WritePair(second % 100, to + 8);
}

// Writes number / 10^decimals with all of the decimals. `decimals` is at most 10, and the whole
// part is below 1000. It may also write some bytes after the end that it returns; they mean
// nothing.
char* WriteFixed(uint64_t number, int decimals, char* to) {
  const uint64_t power = kPowersOfTen[decimals];
  uint32_t whole = 0;
  if (number >= power) {
    whole = static_cast<uint32_t>(number / power);
    number -= whole * power;
  }
  if (whole >= 100) *to++ = static_cast<char>('0' + whole / 100);
  if (whole >= 10) *to++ = static_cast<char>('0' + whole / 10 % 10);
  *to++ = static_cast<char>('0' + whole % 10);
  if (decimals == 0) return to;
  *to++ = '.';
  WriteDigits(number * kPowersOfTen[10 - decimals], to);
  return to + decimals;
}

// Writes mantissa / 2^t, a value from 0.001 to 1000, for 2^23 < mantissa < 2^24 and 14 <= t <= 33.
// For such a value fixed notation never has more digits than the other one. Returns null where two
// decimals are equally near: std::to_chars must decide then.
char* WriteBinaryFraction(uint64_t mantissa, int t, char* to) {
  // All of these are exact, in units of 2^-(t + 1) 10^-decimals: the value, and the range of what
  // is nearer to it than to its neighbours. There are so many decimals that at least one decimal
  // number in the range is whole.
  int decimals = kDecimals.of[t];
  const uint64_t power = kPowersOfTen[decimals];
  const int shift = t + 1;
  const uint64_t value = 2 * mantissa * power;
  // A number exactly between two floats is read as the even one.
  const uint64_t open = mantissa & 1;
  uint64_t low = (value - power + open + (uint64_t{1} << shift) - 1) >> shift;
  uint64_t high = (value + power - open) >> shift;
  // The digits that are cut off the value: the last one, and whether all digits after it are zeros.
  uint64_t digits = value >> shift, last = 0;
  const uint64_t below = value & ((uint64_t{1} << shift) - 1);
  bool exact = below == 0;
  int taken = 0;
  for (; decimals > 0; --decimals, ++taken) {
    const uint64_t next_low = (low + 9) / 10, next_high = high / 10;
    if (next_low > next_high) break;
    low = next_low;
    high = next_high;
    exact = exact && last == 0;
    last = digits % 10;
    digits /= 10;
  }
  // Chooses the number nearest to the value of those between low and high.
  const uint64_t half = taken > 0 ? 5 : uint64_t{1} << (shift - 1);
  const uint64_t rest = taken > 0 ? last : below;
  if (rest == half && (taken == 0 || exact)) return nullptr;
  const uint64_t nearest = digits + (rest >= half ? 1 : 0);
  return WriteFixed(nearest, decimals, to);
}

}  // namespace

char* ShortestFloat(float value, char* to) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const int t = 150 - static_cast<int>(bits >> 23 & 0xff);
  const uint32_t fraction = bits & 0x7fffff;
  const float magnitude = std::bit_cast<float>(bits & 0x7fffffff);
  // A power of two has a nearer neighbour below it.
  if (magnitude >= 0.001f && magnitude < 1000.0f && fraction != 0) {
    char* start = to;
    if (bits >> 31 != 0) *start++ = '-';
    char* const end = WriteBinaryFraction(fraction | 0x800000, t, start);
    if (end != nullptr) return end;
  }
  return std::to_chars(to, to + kMostFloatChars, value).ptr;
}

}  // namespace muster
