#include "muster/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace muster
