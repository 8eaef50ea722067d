#include "muster/formats/json_tree.h"

#include <string>

#include "gtest/gtest.h"

namespace muster::formats {
namespace {

TEST(JsonTreeTest, ReadsWhatTheLibraryReads) {
  const std::string texts[] = {
      "null",
      " true ",
      "-7",
      "18446744073709551615",
      "1.5e3",
      R"("a\"\u00e9\n")",
      "[]",
      "{}",
      R"([1,[2,[]],{"a":[{}],"b":null},"x"])",
      R"({"metadata":{"name":"j","labels":{"a/b":"c"}},"spec":{"list":[{"x":1},{"y":[true]}]},"z":0})",
  };
  for (const std::string& text : texts) {
    const auto tree = ParseJsonTree(text, 10);
    ASSERT_TRUE(tree) << text;
    const Json expected = Json::parse(text);
    EXPECT_EQ(*tree, expected) << text;
    EXPECT_EQ(tree->type(), expected.type()) << text;
    EXPECT_EQ(tree->dump(), expected.dump()) << text;  // in its order
  }
}

TEST(JsonTreeTest, RefusesWhatIsNotOneValueInUtf8) {
  const std::string texts[] = {"",     " ",         "{",
                               "[1",   R"({"a":})", R"({"a" 1})",
                               "[1]]", "1 2",       "{\"a\":\"\xff\"}",
                               "nul",  "[1,]",      R"({"a":1,})"};
  for (const std::string& text : texts) EXPECT_FALSE(ParseJsonTree(text, 10)) << text;
}

TEST(JsonTreeTest, RefusesWhatNestsTooDeep) {
  EXPECT_TRUE(ParseJsonTree("[[[1]]]", 3));
  EXPECT_FALSE(ParseJsonTree("[[[1]]]", 2));
  EXPECT_FALSE(ParseJsonTree(std::string(1'000'000, '['), 10'000));
  const std::string deep = std::string(9'999, '[') + std::string(9'999, ']');
  EXPECT_TRUE(ParseJsonTree(deep, 10'000));
}

TEST(JsonTreeTest, OfMembersWithOneNameTheFirstIsFound) {
  EXPECT_EQ((*ParseJsonTree(R"({"a":1,"a":2})", 2))["a"], 1);
}

}  // namespace
}  // namespace muster::formats
