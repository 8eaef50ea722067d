#include "muster/formats/json_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Schema JsonSchema() {
  Schema schema;
  const auto add = [&](const char* name, ValueType type) -> Field& {
    Field& field = schema.fields.emplace_back();
    field.name = name;
    field.type = type;
    return field;
  };
  add("age", ValueType::kInt).truncate = true;
  add("pay", ValueType::kFloat);
  Field& job = add("job", ValueType::kString);
  job.has_default = true;
  job.default_value = std::string("none");
  add("tags", ValueType::kString).list = true;
  return schema;
}

TEST(JsonDecoderTest, ReadsMembersInAnyOrder) {
  Columns columns(JsonSchema());
  const auto decoder = NewJsonDecoder(JsonSchema());
  ASSERT_TRUE(
      decoder->Decode(R"({"tags":["a","b"],"pay":1.5,"other":{},"age":34.9})", &columns).ok());
  ASSERT_TRUE(
      decoder->Decode(R"({"age":true,"pay":2,"job":"caf\u00e9","tags":"c"})", &columns).ok());
  ASSERT_TRUE(decoder->Decode(R"({"age":-1,"pay":0,"job":null})", &columns).ok());
  EXPECT_EQ(columns.rows(), 3);
  EXPECT_THAT(columns.column(0).ints, ElementsAre(34, 1, -1));
  EXPECT_THAT(columns.column(1).floats, ElementsAre(1.5f, 2.0f, 0.0f));
  EXPECT_THAT(columns.column(2).strings, ElementsAre("none", "caf\xc3\xa9", "none"));
  EXPECT_THAT(columns.column(3).strings, ElementsAre("a", "b", "c"));
  EXPECT_THAT(columns.column(3).offsets, ElementsAre(0u, 2u, 3u, 3u));
}

TEST(JsonDecoderTest, NumbersMayBeInQuotes) {
  Schema schema = JsonSchema();
  schema.fields[1].has_default = true;
  schema.fields[1].default_value = 7.0F;
  Columns columns(schema);
  const auto decoder = NewJsonDecoder(schema);
  ASSERT_TRUE(decoder->Decode(R"({"age":"39","pay":" 1.5 "})", &columns).ok());
  ASSERT_TRUE(decoder->Decode(R"({"age":"+3.0","pay":""})", &columns).ok());
  EXPECT_THAT(columns.column(0).ints, ElementsAre(39, 3));
  EXPECT_THAT(columns.column(1).floats, ElementsAre(1.5F, 7.0F));
  EXPECT_EQ(decoder->Decode(R"({"age":"1","pay":"1,5"})", &columns).message(),
            "column 'pay': \"1,5\" is not a float (write it with a point and no comma, as 1234.5)");
}

TEST(JsonDecoderTest, DatesAreSeconds) {
  Field field;
  field.name = "day";
  field.type = ValueType::kInt;
  field.date = true;
  const Schema schema{{field}};
  Columns columns(schema);
  const auto decoder = NewJsonDecoder(schema);
  ASSERT_TRUE(decoder->Decode(R"({"day":"1970-01-02"})", &columns).ok());
  ASSERT_TRUE(decoder->Decode(R"({"day":60})", &columns).ok());
  EXPECT_THAT(columns.column(0).ints, ElementsAre(86400, 60));
  EXPECT_THAT(std::string(decoder->Decode(R"({"day":"x"})", &columns).message()),
              HasSubstr("is not a date"));
}

TEST(JsonDecoderTest, ABadRowLeavesNothing) {
  Columns columns(JsonSchema());
  const auto decoder = NewJsonDecoder(JsonSchema());
  const auto message = [&](std::string_view row) {
    const absl::Status status = decoder->Decode(row, &columns);
    EXPECT_FALSE(status.ok()) << row;
    return std::string(status.message());
  };
  EXPECT_EQ(message(R"({"age":"x","pay":1})"), "column 'age': \"x\" is not an int");
  EXPECT_EQ(message(R"({"age":1,"pay":"x"})"), "column 'pay': \"x\" is not a float");
  EXPECT_EQ(message(R"({"age":1})"), "column 'pay': no value and no default");
  EXPECT_THAT(message(R"({"age":18446744073709551615,"pay":1})"), HasSubstr("is not an int"));
  EXPECT_THAT(message(R"({"age":1,"pay":1e300})"), HasSubstr("is not a float"));
  EXPECT_THAT(message(R"({"age":1,"pay":1,"tags":["a",2]})"), HasSubstr("2 is not a string"));
  EXPECT_EQ(message("[1]"), "not a JSON object");
  EXPECT_EQ(message("{\"age\":"), "not a JSON object");
  EXPECT_EQ(columns.rows(), 0);
  EXPECT_TRUE(columns.column(0).ints.empty());
  EXPECT_TRUE(columns.column(3).strings.empty());
}

}  // namespace
}  // namespace muster::formats
