#include "muster/base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace muster {
namespace {

using Block = std::array<uint32_t, 4>;

// Known answers of the authors' Random123 distribution (kat_vectors, philox4x32 10).
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStreamTest, SeekContinuesTheSameStream) {
  RandomStream whole(7, RandomPurpose::kDropout, 3);
  std::vector<uint32_t> numbers;
  for (int i = 0; i < 100; ++i) numbers.push_back(whole.Next32());
  for (int start : {0, 1, 5, 63, 99}) {
    RandomStream part(7, RandomPurpose::kDropout, 3);
    part.Seek(start);
    EXPECT_EQ(part.Next32(), numbers[start]) << start;
  }
}

TEST(RandomStreamTest, EveryPartOfTheKeyMatters) {
  const uint64_t reference = RandomStream(1, RandomPurpose::kDropout, 1, 1).Next64();
  EXPECT_NE(RandomStream(2, RandomPurpose::kDropout, 1, 1).Next64(), reference);
  EXPECT_NE(RandomStream(1, RandomPurpose::kShuffleChunks, 1, 1).Next64(), reference);
  EXPECT_NE(RandomStream(1, RandomPurpose::kDropout, 2, 1).Next64(), reference);
  EXPECT_NE(RandomStream(1, RandomPurpose::kDropout, 1, 2).Next64(), reference);
}

TEST(RandomStreamTest, BelowIsUniform) {
  RandomStream stream(11, RandomPurpose::kSampleData, 0);
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts[stream.Below(7)];
  for (int count : counts) EXPECT_NEAR(count, 10000, 500);
}

TEST(RandomStreamTest, NormalHasItsMoments) {
  RandomStream stream(5, RandomPurpose::kInitialWeights, 0);
  double sum = 0, squares = 0, truncated_squares = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double x = stream.Normal();
    sum += x;
    squares += x * x;
    const double t = stream.TruncatedNormal();
    EXPECT_LE(std::fabs(t), 2.0);
    truncated_squares += t * t;
  }
  EXPECT_NEAR(sum / n, 0.0, 0.02);
  EXPECT_NEAR(squares / n, 1.0, 0.02);
  EXPECT_NEAR(truncated_squares / n, 0.7737, 0.02);  // variance of the normal cut at +-2
}

}  // namespace
}  // namespace muster
