#include "muster/features/remainder.h"

#include <gtest/gtest.h>

#include <random>

namespace muster::features {
namespace {

TEST(Remainder, EqualsDivisionForEdgeCases) {
  const uint64_t divisors[] = {1,          2,          3,          5,          7,
                               10,         997,        1000,       1024,       65536,
                               2147483646, 2147483647, 1ULL << 31, 1ULL << 32, (1ULL << 63) - 1,
                               1ULL << 63, ~0ULL - 1,  ~0ULL};
  for (const uint64_t divisor : divisors) {
    const Remainder remainder(divisor);
    for (const uint64_t base : {uint64_t{0}, divisor, divisor * 2, ~uint64_t{0} / divisor * divisor,
                                uint64_t{1} << 32, uint64_t{1} << 63, ~uint64_t{0}}) {
      for (uint64_t delta = 0; delta < 3; ++delta) {
        EXPECT_EQ(remainder.Of(base + delta), (base + delta) % divisor) << divisor;
        EXPECT_EQ(remainder.Of(base - delta), (base - delta) % divisor) << divisor;
      }
    }
  }
}

TEST(Remainder, EqualsDivisionForRandomNumbers) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t divisor = (random() >> (random() % 64)) | 1;
    const uint64_t value = random() >> (random() % 64);
    ASSERT_EQ(Remainder(divisor).Of(value), value % divisor) << value << " % " << divisor;
  }
}

}  // namespace
}  // namespace muster::features
