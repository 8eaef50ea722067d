#include "muster/base/utf8.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using namespace std::string_view_literals;

TEST(Utf8Test, TakesEachLengthAtItsLimits) {
  for (const std::string_view text :
       {""sv, "a"sv, "\0"sv, "\x7f"sv, "\xc2\x80"sv, "\xdf\xbf"sv, "\xe0\xa0\x80"sv,
        "\xed\x9f\xbf"sv, "\xee\x80\x80"sv, "\xef\xbf\xbf"sv, "\xf0\x90\x80\x80"sv,
        "\xf4\x8f\xbf\xbf"sv}) {
    EXPECT_TRUE(IsUtf8(text)) << testing::PrintToString(text);
  }
}

TEST(Utf8Test, RefusesOtherBytes) {
  for (const std::string_view text :
       {"\x80"sv, "\xff"sv, "\xc1\xbf"sv /* too long */, "\xe0\x9f\xbf"sv, "\xf0\x8f\xbf\xbf"sv,
        "\xed\xa0\x80"sv /* a surrogate */, "\xf4\x90\x80\x80"sv /* over U+10FFFF */, "\xc2"sv,
        "\xe2\x82"sv, "\xf0\x90\x80"sv, "\xc2 "sv, "ab\xe2\x82z"sv}) {
    EXPECT_FALSE(IsUtf8(text)) << testing::PrintToString(text);
  }
}

}  // namespace
}  // namespace muster
