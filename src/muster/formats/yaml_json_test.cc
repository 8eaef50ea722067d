#include "muster/formats/yaml_json.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::formats {
namespace {

absl::StatusOr<Json> JsonFromYaml(const std::string& yaml) {
  MUSTER_ASSIGN_OR_RETURN(const YamlReader reader, YamlReader::Parse(yaml, "job.yaml"));
  Json value = YamlToJson(reader);
  if (!reader.ok()) return reader.status();
  return value;
}

TEST(YamlJson, ScalarsByTheCoreSchema) {
  const auto value = JsonFromYaml(
      "{a: 1, b: '1', c: true, d: \"true\", e: , f: 1.5, g: 1e3, h: text, i: 08080, j: -3, "
      "k: 18446744073709551615, l: 0x1F, m: 1.2.3, n: !!str 7, o: no}");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(value->dump(),
            R"({"a":1,"b":"1","c":true,"d":"true","e":null,"f":1.5,"g":1000.0,"h":"text",)"
            R"("i":8080,"j":-3,"k":18446744073709551615,"l":"0x1F","m":"1.2.3","n":"7","o":"no"})");
}

TEST(YamlJson, PrintsWhatReadsBackEqual) {
  Json value = {
      {"plain", "a b"},
      {"empty", ""},
      {"number", "12"},
      {"yes", "yes"},
      {"colon", "a: b"},
      {"hash", "a #b"},
      {"dash", "- x"},
      {"lines", "a\nb\n"},
      {"null", nullptr},
      {"none", Json::object()},
      {"empty_list", Json::array()},
      {"list", {1, "x", {{"k", {1, 2}}, {"l", Json::array({Json::array({3}), Json::object()})}}}},
      {"deep", {{"deeper", {{"deepest", true}}}}},
      {"1", "a key like a number"}};
  const std::string yaml = JsonToYaml(value);
  const auto again = JsonFromYaml(yaml);
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << yaml;
  EXPECT_EQ(*again, value) << yaml;
}

TEST(YamlJson, AliasesThatExpandWithoutEndAreRefused) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    bomb += StrCat("a", i, ": &a", i, " [");
    for (int j = 0; j < 10; ++j) bomb += StrCat(j > 0 ? ", " : "", "*a", i - 1);
    bomb += "]\n";
  }
  EXPECT_THAT(JsonFromYaml(bomb).status().message(), testing::HasSubstr("more than 100000 values"));
  EXPECT_FALSE(JsonFromYaml("a: &a [*a]").ok());
  EXPECT_THAT(JsonFromYaml("{a: 1, a: 2}").status().message(), testing::HasSubstr("'a' twice"));
}

TEST(YamlJson, KeysThatYamlCannotPrintAreRefused) {
  EXPECT_TRUE(JsonFromYaml(StrCat(std::string(1022, 'k'), ": 1")).ok());
  EXPECT_THAT(JsonFromYaml(StrCat("? ", std::string(1023, 'k'), "\n: 1")).status().message(),
              testing::HasSubstr("a key of 1023 bytes"));
  // Each bell is printed as six characters.
  EXPECT_FALSE(JsonFromYaml(StrCat("'", std::string(200, '\a'), "': 1")).ok());
}

}  // namespace
}  // namespace muster::formats
