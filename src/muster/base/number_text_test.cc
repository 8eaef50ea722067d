#include "muster/base/number_text.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(NumberTextTest, CountsAndDurations) {
  EXPECT_EQ(FormatCount(7), "7");
  EXPECT_EQ(FormatCount(1234), "1.2k");
  EXPECT_EQ(FormatCount(123456), "123k");
  EXPECT_EQ(FormatCount(1.25e6), "1.2M");
  EXPECT_EQ(FormatDuration(0.4), "0s");
  EXPECT_EQ(FormatDuration(65), "1m 05s");
  EXPECT_EQ(FormatDuration(3725), "1h 02m");
  EXPECT_EQ(GroupDigits(7), "7");
  EXPECT_EQ(GroupDigits(1234567), "1,234,567");
}

}  // namespace
}  // namespace muster
