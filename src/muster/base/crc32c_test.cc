#include "muster/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

#include "muster/base/random.h"

namespace muster {
namespace {

// RFC 3720 appendix B.4.
TEST(Crc32cTest, KnownAnswers) {
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string ascending(32, '\0');
  for (int i = 0; i < 32; ++i) ascending[i] = static_cast<char>(i);
  EXPECT_EQ(Crc32c(ascending), 0x46dd794eu);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(Crc32cTest, ExtendContinues) {
  const std::string text = "a record of thirty-seven characters..";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(ExtendCrc32c(Crc32c(text.substr(0, cut)), text.substr(cut)), Crc32c(text)) << cut;
  }
}

// Bit by bit, as the polynomial says.
uint32_t SlowCrc32c(std::string_view bytes) {
  uint32_t state = ~0u;
  for (const char c : bytes) {
    state ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ (state & 1 ? 0x82f63b78 : 0);
  }
  return ~state;
}

TEST(Crc32cTest, EveryLengthAndAlignmentAgreesWithTheDefinition) {
  RandomStream random(1, RandomPurpose::kSampleData, 0);
  std::string bytes(40'000, '\0');
  for (char& c : bytes) c = static_cast<char>(random.Below(256));
  const std::string_view all = bytes;
  for (size_t size = 0; size < 800; ++size) {
    EXPECT_EQ(Crc32c(all.substr(size % 9, size)), SlowCrc32c(all.substr(size % 9, size))) << size;
  }
  for (const size_t size : {12'287, 12'288, 12'289, 13'056, 24'576, 39'990}) {
    EXPECT_EQ(Crc32c(all.substr(3, size)), SlowCrc32c(all.substr(3, size))) << size;
  }
}

}  // namespace
}  // namespace muster
