#include "muster/formats/missing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <utility>

#include "muster/formats/batch_stream.h"
#include "muster/formats/batch_stream_test_util.h"
#include "muster/formats/csv.h"
#include "muster/formats/example.h"
#include "muster/formats/example_test_util.h"
#include "muster/formats/json_lines.h"

namespace muster::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Schema MissingSchema() {
  Schema schema;
  const auto add = [&](const char* name, ValueType type, bool list,
                       std::vector<std::string> missing) -> Field& {
    Field& field = schema.fields.emplace_back(TypedField(name, type, list));
    field.missing = std::move(missing);
    field.has_default = !list;
    return field;
  };
  add("job", ValueType::kString, false, {"?", "NA"}).default_value = std::string("none");
  add("age", ValueType::kInt, false, {"NA", "-999"}).default_value = int64_t{7};
  add("pay", ValueType::kFloat, false, {"NA", "-1"}).default_value = 0.5f;
  add("tags", ValueType::kString, true, {"?"});
  add("codes", ValueType::kInt, true, {"NA", "-999"});
  return schema;
}

// Expects three rows: in the first everything counts as missing, in the second nothing does, and
// the third has lists with a missing word among others.
void ExpectTheRows(const Columns& columns, std::string_view reader) {
  SCOPED_TRACE(reader);
  ASSERT_EQ(columns.rows(), 3);
  EXPECT_THAT(columns.column(0).strings, ElementsAre("none", "clerk", "none"));
  EXPECT_THAT(columns.column(1).ints, ElementsAre(7, 34, 7));
  EXPECT_THAT(columns.column(2).floats, ElementsAre(0.5f, 1.5f, 0.5f));
  EXPECT_THAT(columns.column(3).offsets, ElementsAre(0u, 0u, 1u, 3u));
  EXPECT_THAT(columns.column(3).strings, ElementsAre("a", "?", "b"));
  EXPECT_THAT(columns.column(4).offsets, ElementsAre(0u, 0u, 1u, 3u));
  EXPECT_THAT(columns.column(4).ints, ElementsAre(5, -999, 6));
}

void DecodeAll(RowDecoder& decoder, const std::vector<std::string>& records, Columns* columns) {
  for (const std::string& record : records) {
    const auto kept = std::make_shared<const std::string>(record);
    columns->KeepAlive(kept);  // strings point into it
    const absl::Status status = decoder.Decode(*kept, columns);
    ASSERT_TRUE(status.ok()) << status;
  }
}

TEST(MissingValuesTest, CsvReplacesOrRemovesThem) {
  Columns columns(MissingSchema());
  const auto decoder = NewCsvDecoder(MissingSchema(), {"job", "age", "pay", "tags", "codes"});
  ASSERT_TRUE(decoder.ok()) << decoder.status();
  DecodeAll(**decoder, {"?,NA, -1.0,?,NA", "clerk,34,1.5,a,5", "NA,-999,NA,?|b,-999|6"}, &columns);
  ExpectTheRows(columns, "CSV");
}

TEST(MissingValuesTest, JsonReplacesOrRemovesThem) {
  Columns columns(MissingSchema());
  DecodeAll(*NewJsonDecoder(MissingSchema()),
            {R"({"job":"?","age":"NA","pay":-1,"tags":["?"],"codes":["NA"]})",
             R"({"job":"clerk","age":34,"pay":1.5,"tags":"a","codes":[5]})",
             R"({"job":"NA","age":-999.0,"pay":"NA","tags":["?","b"],"codes":[-999,6]})"},
            &columns);
  ExpectTheRows(columns, "JSON lines");
}

TEST(MissingValuesTest, ExamplesReplaceOrRemoveThem) {
  const auto record = [](const std::string& job, int64_t age, const std::string& pay,
                         const std::vector<std::string>& tags, const std::vector<int64_t>& codes) {
    std::string texts, numbers;
    for (const std::string& tag : tags) texts += WireBytes(1, tag);
    for (const int64_t code : codes) numbers += WireVarint(static_cast<uint64_t>(code));
    return WireExample(WireEntry("job", BytesFeature(job)) + WireEntry("age", IntFeature(age)) +
                       WireEntry("pay", pay) + WireEntry("tags", WireBytes(1, texts)) +
                       WireEntry("codes", WireBytes(3, WireBytes(1, numbers))));
  };
  const std::vector<std::string> records = {
      record("?", -999, FloatFeature(-1), {"?"}, {-999}),
      record("clerk", 34, FloatFeature(1.5), {"a"}, {5}),
      // An int64 fills a float field.
      record("NA", -999, IntFeature(-1), {"?", "b"}, {-999, 6})};
  Columns columns(MissingSchema());
  DecodeAll(*NewExampleDecoder(MissingSchema()), records, &columns);
  ExpectTheRows(columns, "tf.Example");
}

TEST(MissingValuesTest, BatchStreamsReplaceOrRemoveThem) {
  const Schema schema = MissingSchema();
  std::vector<TestStreamColumn> stream;
  for (const Field& field : schema.fields) stream.push_back({field.name, field.type, field.list});
  std::string payload;
  const auto texts = [&](const std::vector<std::string>& values) {
    for (const std::string& value : values)
      AppendRaw(static_cast<uint32_t>(value.size()), &payload);
    for (const std::string& value : values) payload += value;
  };
  const auto numbers = [&](auto... values) { (AppendRaw(values, &payload), ...); };
  texts({"?", "clerk", "NA"});
  numbers(int64_t{-999}, int64_t{34}, int64_t{-999});
  numbers(-1.0f, 1.5f, -1.0f);
  numbers(uint32_t{1}, uint32_t{1}, uint32_t{2});
  texts({"?", "a", "?", "b"});
  numbers(uint32_t{1}, uint32_t{1}, uint32_t{2});
  numbers(int64_t{-999}, int64_t{5}, int64_t{-999}, int64_t{6});

  const auto decoder = BatchStreamDecoder::Create(TestStreamHeader(stream), schema);
  ASSERT_TRUE(decoder.ok()) << decoder.status();
  const auto bytes = std::make_shared<const std::string>(payload);
  const FramePrefix frame = {.rows = 3, .crc = TestCrc(payload), .bytes = payload.size()};
  Columns columns(schema);
  const absl::Status status = (*decoder)->Decode(frame, bytes, &columns);
  ASSERT_TRUE(status.ok()) << status;
  ExpectTheRows(columns, "batches");
}

TEST(MissingValuesTest, ANumberWithoutADefaultIsAnError) {
  Schema schema;
  schema.fields.push_back(TypedField("age", ValueType::kInt));
  schema.fields[0].missing = {"-1"};
  Columns columns(schema);
  EXPECT_THAT(NewJsonDecoder(schema)->Decode(R"({"age":-1})", &columns).message(),
              HasSubstr("no value and no default"));
  const std::string example = WireExample(WireEntry("age", IntFeature(-1)));
  EXPECT_THAT(NewExampleDecoder(schema)->Decode(example, &columns).message(),
              HasSubstr("no value for it, and it has no default"));
  const auto csv = NewCsvDecoder(schema, {"age"});
  ASSERT_TRUE(csv.ok());
  EXPECT_THAT((*csv)->Decode("-1", &columns).message(), HasSubstr("no value and no default"));
  EXPECT_EQ(columns.rows(), 0);
  columns.mutable_column(0).ints = {3, -1};
  const absl::Status status =
      MissingValues(schema.fields[0]).ReplaceRows(schema.fields[0], 0, 0, 2, &columns);
  EXPECT_EQ(status.message(), "column 'age', row 2: no value and no default");
}

TEST(MissingValuesTest, NumbersAreComparedAsNumbers) {
  Field field = TypedField("x", ValueType::kFloat);
  field.missing = {"-999", "nan", "NA", "1e400"};
  const MissingValues missing(field);
  EXPECT_TRUE(missing.Has(-999.0f));
  EXPECT_TRUE(missing.Has(std::numeric_limits<float>::quiet_NaN()));
  EXPECT_FALSE(missing.Has(999.0f));
  EXPECT_TRUE(missing.Has("NA"));
  EXPECT_FALSE(missing.Has("-999.0"));
  field.type = ValueType::kInt;
  field.missing = {"9007199254740993", "7.0", "7.5"};
  const MissingValues ints(field);
  EXPECT_THAT(ints.ints(), ElementsAre(9007199254740993, 7));
  field.missing = {};
  EXPECT_FALSE(MissingValues(field).Has(int64_t{0}));
}

}  // namespace
}  // namespace muster::formats
