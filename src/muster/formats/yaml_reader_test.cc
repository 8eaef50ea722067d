#include "muster/formats/yaml_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::formats {
namespace {

using ::testing::HasSubstr;
using namespace std::string_view_literals;

std::string Message(const absl::Status& status) { return std::string(ToStd(status.message())); }

TEST(YamlReaderTest, AssignmentLeavesTheDocumentAlone) {
  const auto root = YamlReader::Parse("a: {x: 1}\nb: {y: 2}\n", "f.yaml");
  ASSERT_TRUE(root.ok());
  YamlReader found = *root;
  root->ForEach([&](const std::string&, const YamlReader& child) { found = child; });
  EXPECT_EQ(found.Int("y", 0, 0, 9), 2);
  EXPECT_EQ(found.path(), "b");
  EXPECT_EQ(root->At("a").Int("x", 0, 0, 9), 1);
  EXPECT_TRUE(root->ok());
}

TEST(YamlReaderTest, ATabThatIndentsIsNamedWithItsLine) {
  const auto error = [](std::string_view text) {
    return Message(YamlReader::Parse(text, "f.yaml").status());
  };
  constexpr std::string_view kTab = ": not YAML: a tab indents this line; write spaces";
  EXPECT_EQ(error("a:\n\tb: 1\n\tc: 2\n"), StrCat("f.yaml:2", kTab));
  EXPECT_EQ(error("a:\n  b:\n\t  c: 2\nd: 3\n"), StrCat("f.yaml:3", kTab));
  EXPECT_EQ(error("a:\n  b: 1\n \tc: 2\n"), StrCat("f.yaml:3", kTab));
  EXPECT_THAT(error("a: [1\nb: 2\n"), HasSubstr("f.yaml:2: not YAML: "));
  EXPECT_EQ(error("a: {b: 1,\n\tc: 2}\t# allowed\n"), "");
}

TEST(YamlReaderTest, SettingsChangeTheDocument) {
  auto root = YamlReader::Parse("a: {x: 1, y: 2}\nb: [3]\n", "f.yaml");
  ASSERT_TRUE(root.ok());
  ASSERT_TRUE(root->Set("a.x=7").ok());
  ASSERT_TRUE(root->Set("b=[5, 6]").ok());
  ASSERT_TRUE(root->Set("c.d.e={k: v=w}").ok());
  EXPECT_EQ(root->At("a").Int("x", 0, 0, 9), 7);
  EXPECT_EQ(root->At("a").Int("y", 0, 0, 9), 2);
  EXPECT_EQ(root->Strings("b"), (std::vector<std::string>{"5", "6"}));
  EXPECT_EQ(root->At("c").At("d").At("e").String("k"), "v=w");
  EXPECT_TRUE(root->ok()) << root->status();
  root->At("b").Items()[1].AsInt(0, 5);
  EXPECT_EQ(Message(root->status()), "f.yaml with b=[5, 6]: b[1]: 6 is not between 0 and 5");
}

TEST(YamlReaderTest, InvalidSettingsAreRefused) {
  auto root = YamlReader::Parse("a: {x: 1}\nb: [3]\n", "f.yaml");
  ASSERT_TRUE(root.ok());
  for (const std::string wrong : {"a.x", "=1", "a..x=1", "a.=1", ""}) {
    EXPECT_THAT(Message(root->Set(wrong)), HasSubstr("PATH=VALUE")) << wrong;
  }
  EXPECT_THAT(Message(root->Set("a.x.y=1")), HasSubstr("a.x is not a map in f.yaml"));
  EXPECT_THAT(Message(root->Set("b.y=1")), HasSubstr("b is not a map"));
  EXPECT_THAT(Message(root->Set("a.x=[1")), HasSubstr("cannot be set: the value:1: not YAML"));
  EXPECT_THAT(Message(root->Set(StrCat("a.x=", std::string(40, '[')))), HasSubstr("nests deeper"));
  EXPECT_EQ(root->At("a").Int("x", 0, 0, 9), 1);
  // Errors elsewhere still name their line.
  root->At("b").AsInt(0, 9);
  EXPECT_THAT(Message(root->status()), HasSubstr("f.yaml:2: b: must be a whole number"));
}

TEST(YamlReaderTest, OnlyUtf8IsRead) {
  for (const std::string_view text : {"a: \xa5"sv,
                                      "\xff\xfe"
                                      "a\0:\0"sv,
                                      "a: b\0c"sv, "\0a"sv}) {
    const auto root = YamlReader::Parse(text, "f.yaml");
    ASSERT_FALSE(root.ok());
    EXPECT_EQ(Message(root.status()), "f.yaml: is not UTF-8 text");
  }
  const auto root = YamlReader::Parse("a: gr\xc3\xbc\xc3\x9f\x65", "f.yaml");
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(root->String("a"), "gr\xc3\xbc\xc3\x9f\x65");
}

TEST(YamlReaderTest, TheFirstErrorIsKeptWithItsPlace) {
  const auto root = YamlReader::Parse("a:\n  b: 12\n  c: [1, x]\n", "f.yaml");
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(root->At("a").Int("b", 0, 0, 10), 0);
  EXPECT_TRUE(root->At("a").At("c").AsFloats().empty());
  EXPECT_EQ(Message(root->status()), "f.yaml:2: a.b: 12 is not between 0 and 10");
}

TEST(YamlReaderTest, UnknownAndRepeatedKeysAreErrors) {
  const auto unknown = YamlReader::Parse("columms: 1\n", "f.yaml");
  ASSERT_TRUE(unknown.ok());
  unknown->CheckKeys({"columns", "inputs"});
  EXPECT_EQ(Message(unknown->status()),
            "f.yaml:1: unknown key 'columms' (did you mean 'columns'?)");
  const auto map = YamlReader::Parse("inputs: 1\ncolumms:\n  a: 1\n", "f.yaml");
  ASSERT_TRUE(map.ok());
  map->CheckKeys({"columns", "inputs"});
  EXPECT_THAT(Message(map->status()), HasSubstr("f.yaml:2: "))
      << "the error must name the key's line";
  const auto twice = YamlReader::Parse("a: 1\na: 2\n", "f.yaml");
  ASSERT_TRUE(twice.ok());
  twice->CheckKeys({"a"});
  EXPECT_THAT(Message(twice->status()), HasSubstr("a: is given twice"));
}

TEST(YamlReaderTest, DepthHasALimit) {
  const auto deep = YamlReader::Parse(std::string(33, '['), "f.yaml");
  EXPECT_EQ(Message(deep.status()), "f.yaml: nests deeper than 32 levels");
}

TEST(YamlReaderTest, AStreamKeepsItsLineNumbers) {
  const auto documents = YamlReader::ParseAll("# first\n---\na: 1\n---\n\nb: x\n", "f.yaml");
  ASSERT_TRUE(documents.ok());
  ASSERT_EQ(documents->size(), 2);
  EXPECT_EQ((*documents)[0].Int("a", 0, 0, 9), 1);
  EXPECT_EQ((*documents)[1].Int("b", 0, 0, 9), 0);
  EXPECT_EQ(Message((*documents)[1].status()), "f.yaml:6: b: 'x' is not a whole number");
}

}  // namespace
}  // namespace muster::formats
