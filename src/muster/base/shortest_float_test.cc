#include "muster/base/shortest_float.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

std::string Standard(float value) {
  char text[kMostFloatChars];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string Ours(float value) {
  char text[kMostFloatChars];
  return {text, ShortestFloat(value, text)};
}

TEST(ShortestFloatTest, EqualsToCharsOnEveryMagnitude) {
  // A prime step through all bit patterns: signs, subnormals, infinities and NaNs among them.
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 15'013) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    ASSERT_EQ(Ours(value), Standard(value)) << "bits " << bits;
  }
}

TEST(ShortestFloatTest, EqualsToCharsBetweenAThousandthAndAThousand) {
  const auto first = std::bit_cast<uint32_t>(0.00099f), last = std::bit_cast<uint32_t>(1001.0f);
  for (uint32_t bits = first; bits < last; bits += 313) {
    const auto value = std::bit_cast<float>(bits);
    ASSERT_EQ(Ours(value), Standard(value)) << "bits " << bits;
    ASSERT_EQ(Ours(-value), Standard(-value)) << "bits " << bits;
  }
}

TEST(ShortestFloatTest, RoundNumbersAndTheirNeighbours) {
  for (int tenths = 0; tenths <= 20'000; ++tenths) {
    const auto value = static_cast<float>(tenths / 10.0);
    for (const float near : {value, std::nextafter(value, 0.0f), std::nextafter(value, 1e9f)}) {
      ASSERT_EQ(Ours(near), Standard(near));
    }
  }
  EXPECT_EQ(Ours(0.1f), "0.1");
  EXPECT_EQ(Ours(-999.5f), "-999.5");
}

}  // namespace
}  // namespace muster
