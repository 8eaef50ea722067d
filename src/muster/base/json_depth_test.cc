#include "muster/base/json_depth.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

constexpr size_t kNone = std::string_view::npos;

TEST(JsonDepthTest, FindsTheFirstBracketTooDeep) {
  EXPECT_EQ(FindDeeperJson("", 0), kNone);
  EXPECT_EQ(FindDeeperJson("1", 0), kNone);
  EXPECT_EQ(FindDeeperJson("[]", 0), 0);
  EXPECT_EQ(FindDeeperJson("[{}, [1]]", 2), kNone);
  EXPECT_EQ(FindDeeperJson("[{}, [[1]]]", 2), 6);
}

TEST(JsonDepthTest, BracketsInStringsDoNotCount) {
  EXPECT_EQ(FindDeeperJson(R"(["[[{{"])", 1), kNone);
  EXPECT_EQ(FindDeeperJson(R"(["\"[[", "\\"])", 1), kNone);
  EXPECT_EQ(FindDeeperJson(R"(["\\", []])", 1), 7);
  EXPECT_EQ(FindDeeperJson("[\"cut\\", 1), kNone);
}

}  // namespace
}  // namespace muster
