#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <numeric>

#include "muster/base/random.h"
#include "muster/formats/column_decoder_conformance.h"
#include "muster/formats/csv.h"
#include "muster/formats/example.h"
#include "muster/formats/example_test_util.h"
#include "muster/formats/json_lines.h"
#include "muster/formats/memory_columns.h"

namespace muster::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<uint32_t> RowsUpTo(size_t count) {
  std::vector<uint32_t> rows(count);
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

size_t GetRows(const std::vector<TestColumn>& table) { return table.at(0).rows.size(); }

// Returns a row of the table as a tf.Example.
std::string ExampleRow(const std::vector<TestColumn>& table, size_t row) {
  std::string entries;
  for (const TestColumn& column : table) {
    const std::vector<Value>& values = column.rows[row];
    if (values.empty()) continue;
    std::string list;
    for (const Value& value : values) {
      if (const auto* number = std::get_if<int64_t>(&value)) {
        list += WireVarint(static_cast<uint64_t>(*number));
      } else if (const auto* real = std::get_if<float>(&value)) {
        list += WireFloat(*real);
      } else {
        list += WireBytes(1, std::get<std::string>(value));
      }
    }
    if (values[0].index() != 2) list = WireBytes(1, list);
    constexpr uint32_t kFieldOfKind[] = {3, 2, 1};
    entries += WireEntry(column.name, WireBytes(kFieldOfKind[values[0].index()], list));
  }
  return WireExample(entries);
}

std::string GetText(const Value& value) {
  return std::visit([](const auto& held) { return StrCat(held); }, value);
}

std::string JsonRow(const std::vector<TestColumn>& table, size_t row) {
  std::string json;
  for (const TestColumn& column : table) {
    std::string list;
    for (const Value& value : column.rows[row]) {
      list += list.empty() ? "" : ",";
      list += value.index() == 2 ? StrCat("\"", GetText(value), "\"") : GetText(value);
    }
    json += StrCat(json.empty() ? "" : ",", "\"", column.name, "\":");
    json += column.list ? StrCat("[", list, "]") : list.empty() ? "null" : list;
  }
  return StrCat("{", json, "}");
}

std::string CsvRow(const std::vector<TestColumn>& table, size_t row) {
  std::string csv;
  for (size_t i = 0; i < table.size(); ++i) {
    std::string cell;
    for (const Value& value : table[i].rows[row])
      cell += (cell.empty() ? "" : "|") + GetText(value);
    csv += (i == 0 ? "" : ",") + cell;
  }
  return csv;
}

// The result of a row decoder for rows of a table.
struct RowsDecoded {
  Columns columns;
  std::vector<std::pair<size_t, absl::Status>> bad = {};
  std::vector<std::string> records = {};  // the memory that strings point into
};
template <typename WriteRow>
RowsDecoded DecodeRows(const Schema& schema, const std::vector<TestColumn>& table,
                       const std::vector<uint32_t>& rows, RowDecoder& decoder,
                       const WriteRow& write) {
  RowsDecoded decoded = {.columns = Columns(schema)};
  decoded.records.reserve(rows.size());
  for (size_t place = 0; place < rows.size(); ++place) {
    decoded.records.push_back(write(table, rows[place]));
    const absl::Status status = decoder.Decode(decoded.records.back(), &decoded.columns);
    if (!status.ok()) decoded.bad.emplace_back(place, status);
  }
  return decoded;
}

void ExpectSame(const Columns& got, const Columns& wanted) {
  ASSERT_EQ(got.rows(), wanted.rows());
  ASSERT_EQ(got.columns().size(), wanted.columns().size());
  for (size_t i = 0; i < got.columns().size(); ++i) {
    const Column &a = got.columns()[i], &b = wanted.columns()[i];
    EXPECT_EQ(a.ints, b.ints) << i;
    EXPECT_EQ(a.strings, b.strings) << i;
    EXPECT_EQ(a.offsets, b.offsets) << i;
    ASSERT_EQ(a.floats.size(), b.floats.size()) << i;
    for (size_t v = 0; v < a.floats.size(); ++v) {
      EXPECT_EQ(std::bit_cast<uint32_t>(a.floats[v]), std::bit_cast<uint32_t>(b.floats[v])) << i;
    }
  }
}

Field WithDefault(Field field, Value value, std::vector<std::string> missing = {}) {
  field.has_default = true;
  field.default_value = std::move(value);
  field.missing = std::move(missing);
  return field;
}

Field WithMissing(Field field, std::vector<std::string> missing) {
  field.missing = std::move(missing);
  return field;
}

// Returns a schema with scalars and lists of all types, with and without defaults and missing
// values.
Schema FullSchema() {
  return {{TypedField("id", ValueType::kInt),
           WithDefault(TypedField("count", ValueType::kInt), int64_t{-1}, {"7"}),
           WithDefault(TypedField("price", ValueType::kFloat), 0.5f, {"nan", "-999"}),
           WithDefault(TypedField("color", ValueType::kString), std::string("none"), {"NA"}),
           TypedField("tags", ValueType::kString, true),
           WithMissing(TypedField("views", ValueType::kInt, true), {"3"}),
           TypedField("weights", ValueType::kFloat, true),
           WithDefault(TypedField("whole", ValueType::kFloat), 2.0f)}};
}

std::vector<TestColumn> FullTable(size_t rows) {
  std::vector<TestColumn> table = {
      {"id", BufferType::kInt64},          {"count", BufferType::kInt64},
      {"unused", BufferType::kString},     {"price", BufferType::kFloat},
      {"color", BufferType::kString},      {"tags", BufferType::kString, true},
      {"views", BufferType::kInt64, true}, {"weights", BufferType::kFloat, true},
      {"whole", BufferType::kInt64}};
  RandomStream random(9, RandomPurpose::kSampleData, 0);
  const auto value = [&](BufferType type) -> Value {
    const auto number = static_cast<int64_t>(random.Below(9)) - 1;
    if (type == BufferType::kInt64) return number;
    if (type == BufferType::kFloat) return number == 4 ? -999.0f : static_cast<float>(number) / 4;
    return number == 2 ? std::string("NA") : std::string(static_cast<size_t>(number + 1), 'c');
  };
  for (size_t row = 0; row < rows; ++row) {
    for (TestColumn& column : table) {
      const size_t count = column.list ? random.Below(4) : random.Below(4) > 0 ? 1 : 0;
      std::vector<Value>& values = column.rows.emplace_back();
      while (values.size() < count) values.push_back(value(column.type));
      if (column.name == "id") values = {static_cast<int64_t>(row)};
    }
  }
  return table;
}

}  // namespace

ColumnDecoderConformance::Decoded ColumnDecoderConformance::Decode(
    const Schema& schema, const std::vector<TestColumn>& table, std::vector<uint32_t> rows) const {
  const ColumnData data = format().Make(table);
  Decoded decoded = {.columns = Columns(schema), .bad = {}};
  const absl::Status sound = CheckColumnChunk(data.shapes, data.chunk);
  EXPECT_TRUE(sound.ok()) << sound;
  auto decoder = NewColumnDecoder(schema, data.shapes);
  EXPECT_TRUE(decoder.ok()) << decoder.status();
  if (!sound.ok() || !decoder.ok()) return decoded;
  if (rows.empty()) rows = RowsUpTo(GetRows(table));
  (*decoder)->Decode(data.chunk, rows, &decoded.columns, &decoded.bad);
  return decoded;
}

namespace {

TEST_P(ColumnDecoderConformance, GivesWhatTheRowDecodersGive) {
  const Schema schema = FullSchema();
  const std::vector<TestColumn> table = FullTable(500);
  std::vector<std::string> header;
  for (const TestColumn& column : table) header.push_back(column.name);
  const std::vector<uint32_t> rows = RowsUpTo(500);
  const auto example = NewExampleDecoder(schema), json = NewJsonDecoder(schema);
  const Decoded decoded = Decode(schema, table);
  EXPECT_THAT(decoded.bad, IsEmpty());
  const auto as_examples = DecodeRows(schema, table, rows, *example, ExampleRow);
  EXPECT_THAT(as_examples.bad, IsEmpty());
  ExpectSame(decoded.columns, as_examples.columns);
  const auto as_json = DecodeRows(schema, table, rows, *json, JsonRow);
  EXPECT_THAT(as_json.bad, IsEmpty());
  ExpectSame(decoded.columns, as_json.columns);
}

// An empty cell of CSV is no value, so no string of the table may be empty.
TEST_P(ColumnDecoderConformance, GivesWhatCsvGives) {
  const Schema schema = FullSchema();
  std::vector<TestColumn> table = FullTable(500);
  std::vector<std::string> header;
  for (TestColumn& column : table) {
    header.push_back(column.name);
    for (std::vector<Value>& row : column.rows) {
      for (Value& value : row) {
        if (value == Value(std::string())) value = std::string("x");
      }
    }
  }
  const auto csv = *NewCsvDecoder(schema, header);
  const auto as_csv = DecodeRows(schema, table, RowsUpTo(500), *csv, CsvRow);
  EXPECT_THAT(as_csv.bad, IsEmpty());
  ExpectSame(Decode(schema, table).columns, as_csv.columns);
}

TEST_P(ColumnDecoderConformance, DecodesAnyRowsInAnyOrder) {
  const Schema schema = FullSchema();
  const std::vector<TestColumn> table = FullTable(100);
  const std::vector<uint32_t> rows = {99, 0, 17, 17, 42, 3};
  const auto decoder = NewExampleDecoder(schema);
  ExpectSame(Decode(schema, table, rows).columns,
             DecodeRows(schema, table, rows, *decoder, ExampleRow).columns);
}

TEST_P(ColumnDecoderConformance, RowsThatDoNotFitHaveTheErrorsOfRowDecoders) {
  Field truncated = WithMissing(TypedField("cut", ValueType::kInt), {"5"});
  truncated.truncate = true;
  const Schema schema = {{TypedField("id", ValueType::kInt), truncated,
                          WithMissing(TypedField("word", ValueType::kString), {"NA"})}};
  const std::string text = "w\"\n";
  const std::vector<TestColumn> table = {
      {"id",
       BufferType::kInt64,
       true,
       {{int64_t{1}},
        {},
        {int64_t{1}, int64_t{2}},
        {int64_t{4}},
        {int64_t{5}},
        {int64_t{6}},
        {int64_t{7}},
        {int64_t{8}}}},
      {"cut",
       BufferType::kFloat,
       false,
       {{1.5f}, {1.5f}, {1.5f}, {1e30f}, {5.75f}, {-2.5f}, {}, {NAN}}},
      {"word",
       BufferType::kString,
       true,
       {{text}, {text}, {text}, {text}, {text}, {std::string("NA")}, {text, text}, {text}}}};
  const Decoded decoded = Decode(schema, table);
  const auto decoder = NewExampleDecoder(schema);
  const auto wanted = DecodeRows(schema, table, RowsUpTo(8), *decoder, ExampleRow);
  ASSERT_EQ(wanted.bad.size(), 7u);
  ASSERT_EQ(decoded.bad.size(), wanted.bad.size());
  for (size_t i = 0; i < wanted.bad.size(); ++i) {
    EXPECT_EQ(decoded.bad[i].place, wanted.bad[i].first);
    // This row has two errors, and each decoder reports its first one.
    if (decoded.bad[i].place == 6) continue;
    EXPECT_EQ(decoded.bad[i].why, wanted.bad[i].second);
  }
  EXPECT_THAT(decoded.bad[5].why.message(), HasSubstr("column 'cut': the record has no value"));
  ExpectSame(decoded.columns, wanted.columns);
}

TEST_P(ColumnDecoderConformance, NumbersOfAllTypesFillFields) {
  const Schema schema = {{TypedField("n", ValueType::kInt), TypedField("x", ValueType::kFloat)}};
  for (const BufferType type :
       {BufferType::kInt8, BufferType::kInt16, BufferType::kInt32, BufferType::kInt64,
        BufferType::kUint8, BufferType::kUint16, BufferType::kUint32, BufferType::kUint64}) {
    const Decoded decoded = Decode(schema, {{"n", type, false, {{int64_t{0}}, {int64_t{100}}}},
                                            {"x", type, false, {{int64_t{3}}, {int64_t{7}}}}});
    EXPECT_THAT(decoded.columns.column(0).ints, ElementsAre(0, 100)) << BufferTypeName(type);
    EXPECT_THAT(decoded.columns.column(1).floats, ElementsAre(3, 7)) << BufferTypeName(type);
  }
  const Decoded decoded =
      Decode(schema, {{"n", BufferType::kBool, false, {{int64_t{1}}, {int64_t{0}}}},
                      {"x", BufferType::kDouble, false, {{0.25f}, {-4.0f}}}});
  EXPECT_THAT(decoded.columns.column(0).ints, ElementsAre(1, 0));
  EXPECT_THAT(decoded.columns.column(1).floats, ElementsAre(0.25, -4));
}

TEST_P(ColumnDecoderConformance, NumbersThatAreTooLargeDoNotFit) {
  const Schema schema = {{TypedField("n", ValueType::kInt)}};
  const Decoded decoded =
      Decode(schema, {{"n", BufferType::kUint64, false, {{int64_t{5}}, {int64_t{-1}}}}});
  EXPECT_THAT(decoded.columns.column(0).ints, ElementsAre(5));
  ASSERT_EQ(decoded.bad.size(), 1u);
  EXPECT_EQ(decoded.bad[0].place, 1u);
  EXPECT_EQ(decoded.bad[0].why.message(),
            "column 'n': the int64 18446744073709551615 does not fit into an int");
}

TEST_P(ColumnDecoderConformance, AbsentColumnsHaveDefaults) {
  const Schema schema = {{TypedField("id", ValueType::kInt),
                          WithDefault(TypedField("x", ValueType::kFloat), 1.5f),
                          TypedField("tags", ValueType::kString, true)}};
  const Decoded decoded =
      Decode(schema, {{"id", BufferType::kInt64, false, {{int64_t{1}}, {int64_t{2}}}}});
  EXPECT_THAT(decoded.columns.column(1).floats, ElementsAre(1.5, 1.5));
  EXPECT_THAT(decoded.columns.column(2).offsets, ElementsAre(0, 0, 0));
}

TEST_P(ColumnDecoderConformance, StringsLiveAsLongAsTheBatch) {
  const Schema schema = {{TypedField("word", ValueType::kString)}};
  Columns columns(schema);
  std::weak_ptr<const void> memory;
  {
    const ColumnData data = format().Make(
        {{"word", BufferType::kString, false, {{std::string("one")}, {std::string("two")}}}});
    memory = data.chunk.memory;
    std::vector<BadRow> bad;
    (*NewColumnDecoder(schema, data.shapes))->Decode(data.chunk, RowsUpTo(2), &columns, &bad);
  }
  EXPECT_THAT(columns.column(0).strings, ElementsAre("one", "two"));
  EXPECT_FALSE(memory.expired());
  columns.Clear();
  EXPECT_TRUE(memory.expired());
}

INSTANTIATE_TEST_SUITE_P(Members, ColumnDecoderConformance,
                         testing::Values(std::make_shared<MemoryColumns>(false),
                                         std::make_shared<MemoryColumns>(true)),
                         [](const auto& member) { return member.param->name(); });

TEST(ColumnDecoderTest, ColumnsThatCannotFillAFieldAreRefused) {
  const auto fails = [](Field field, std::vector<ColumnShape> shapes) {
    const absl::Status status = NewColumnDecoder({{field}}, shapes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(ToStd(status.message()));
  };
  const Field number = TypedField("x", ValueType::kInt);
  EXPECT_THAT(fails(number, {}), HasSubstr("has no column 'x', and it has no default"));
  EXPECT_THAT(fails(number, {{"x", BufferType::kString}}),
              HasSubstr("column 'x' of the data is string, but the model file says int"));
  EXPECT_THAT(fails(number, {{"x", BufferType::kDouble}}), HasSubstr("truncate: true"));
  EXPECT_THAT(fails(TypedField("x", ValueType::kString), {{"x", BufferType::kInt8}}),
              HasSubstr("is int8, but the model file says string"));
  EXPECT_THAT(fails(number, {{"x", BufferType::kInt8}, {"x", BufferType::kInt8}}),
              HasSubstr("two columns 'x'"));
}

TEST(ColumnDecoderTest, ANullInAListIsAnErrorOfItsRow) {
  const std::vector<int32_t> offsets = {0, 2, 3};
  const std::string values(3 * sizeof(float), '\0'), valid("\x05", 1);
  ColumnChunk chunk = {.rows = 2};
  chunk.columns.push_back({.list_offsets = offsets, .value_validity = valid, .values = values});
  const std::vector<ColumnShape> shapes = {{"x", BufferType::kFloat, true}};
  ASSERT_TRUE(CheckColumnChunk(shapes, chunk).ok());
  const Schema schema = {{TypedField("x", ValueType::kFloat, true)}};
  Columns columns(schema);
  std::vector<BadRow> bad;
  (*NewColumnDecoder(schema, shapes))->Decode(chunk, RowsUpTo(2), &columns, &bad);
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_EQ(bad[0].place, 0u);
  EXPECT_EQ(bad[0].why.message(), "column 'x': value 2 of its list is null");
  EXPECT_EQ(columns.rows(), 1);
}

}  // namespace
}  // namespace muster::formats
