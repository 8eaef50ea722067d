#include "muster/formats/columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::formats {
namespace {

using testing::ElementsAre;

Schema OneOfEach() {
  Schema schema;
  schema.fields.resize(4);
  schema.fields[0].name = "i";
  schema.fields[0].type = ValueType::kInt;
  schema.fields[1].name = "f";
  schema.fields[1].type = ValueType::kFloat;
  schema.fields[2].name = "s";
  schema.fields[2].type = ValueType::kString;
  schema.fields[3].name = "l";
  schema.fields[3].type = ValueType::kInt;
  schema.fields[3].list = true;
  return schema;
}

void AddWholeRow(int64_t value, int list_size, Columns* columns) {
  columns->mutable_column(0).ints.push_back(value);
  columns->mutable_column(1).floats.push_back(static_cast<float>(value));
  columns->mutable_column(2).strings.emplace_back("s");
  for (int i = 0; i < list_size; ++i) columns->mutable_column(3).ints.push_back(i);
  columns->AddRow();
}

TEST(SchemaTest, FindsFieldsByName) {
  const Schema schema = OneOfEach();
  EXPECT_EQ(schema.Find("i"), 0);
  EXPECT_EQ(schema.Find("l"), 3);
  EXPECT_EQ(schema.Find("I"), -1);
  EXPECT_EQ(schema.Find(""), -1);
}

TEST(SchemaTest, TypeNames) {
  EXPECT_EQ(ValueTypeName(ValueType::kInt), "int");
  EXPECT_EQ(ValueTypeName(ValueType::kFloat), "float");
  EXPECT_EQ(ValueTypeName(ValueType::kString), "string");
}

TEST(ColumnsTest, ListOffsetsFollowTheRows) {
  Columns columns(OneOfEach());
  EXPECT_THAT(columns.column(3).offsets, ElementsAre(0));
  AddWholeRow(1, 2, &columns);
  AddWholeRow(2, 0, &columns);
  AddWholeRow(3, 1, &columns);
  EXPECT_EQ(columns.rows(), 3);
  EXPECT_THAT(columns.column(0).ints, ElementsAre(1, 2, 3));
  EXPECT_THAT(columns.column(3).offsets, ElementsAre(0, 2, 2, 3));
  EXPECT_THAT(columns.column(3).ints, ElementsAre(0, 1, 0));
}

TEST(ColumnsTest, RowsWithoutAValueAreMarkedIfRequested) {
  Schema schema = OneOfEach();
  schema.fields[0].has_default = schema.fields[1].has_default = true;
  schema.fields[0].default_value = int64_t{7};
  schema.fields[1].default_value = 0.5F;
  schema.fields[1].mark_missing = true;
  Columns columns(schema);
  AddWholeRow(1, 0, &columns);
  columns.mutable_column(2).strings.emplace_back("s");
  columns.AppendDefault(1, schema.fields[1]);
  columns.AppendDefault(0, schema.fields[0]);
  columns.AddRow();
  AddWholeRow(3, 0, &columns);
  EXPECT_THAT(columns.column(1).floats, ElementsAre(1, 0.5, 3));
  EXPECT_THAT(columns.column(1).missing, ElementsAre(0, 1, 0));
  EXPECT_THAT(columns.column(0).missing, ElementsAre());
  columns.SetDefault(1, schema.fields[1], 2);
  EXPECT_THAT(columns.column(1).floats, ElementsAre(1, 0.5, 0.5));
  EXPECT_THAT(columns.column(1).missing, ElementsAre(0, 1, 1));
  columns.AppendDefault(1, schema.fields[1]);
  columns.DropPartialRow();
  EXPECT_THAT(columns.column(1).missing, ElementsAre(0, 1, 1));
  columns.RemoveRow(0);
  EXPECT_THAT(columns.column(1).missing, ElementsAre(1, 1));
  columns.Clear();
  AddWholeRow(4, 0, &columns);
  EXPECT_THAT(columns.column(1).missing, ElementsAre(0));
}

TEST(ColumnsTest, APartialRowLeavesNothing) {
  Columns columns(OneOfEach());
  AddWholeRow(1, 2, &columns);
  columns.mutable_column(0).ints.push_back(9);
  columns.mutable_column(3).ints.push_back(9);
  columns.mutable_column(2).strings.emplace_back("9");
  columns.DropPartialRow();
  AddWholeRow(2, 1, &columns);
  EXPECT_THAT(columns.column(0).ints, ElementsAre(1, 2));
  EXPECT_THAT(columns.column(2).strings, ElementsAre("s", "s"));
  EXPECT_THAT(columns.column(3).ints, ElementsAre(0, 1, 0));
  EXPECT_THAT(columns.column(3).offsets, ElementsAre(0, 2, 3));
}

TEST(ColumnsTest, RemoveRowMovesTheRowsAfterItUp) {
  for (int removed = 0; removed < 4; ++removed) {
    Columns columns(OneOfEach()), expected(OneOfEach());
    for (int row = 0; row < 4; ++row) {
      AddWholeRow(row, row, &columns);
      if (row != removed) AddWholeRow(row, row, &expected);
    }
    columns.RemoveRow(removed);
    EXPECT_EQ(columns.rows(), 3);
    EXPECT_EQ(columns.column(0).ints, expected.column(0).ints) << removed;
    EXPECT_EQ(columns.column(1).floats, expected.column(1).floats) << removed;
    EXPECT_EQ(columns.column(2).strings, expected.column(2).strings) << removed;
    EXPECT_EQ(columns.column(3).ints, expected.column(3).ints) << removed;
    EXPECT_EQ(columns.column(3).offsets, expected.column(3).offsets) << removed;
  }
}

TEST(ColumnsTest, ClearEmptiesAndKeepsCapacity) {
  Columns columns(OneOfEach());
  for (int i = 0; i < 100; ++i) AddWholeRow(i, 1, &columns);
  const size_t capacity = columns.column(0).ints.capacity();
  columns.Clear();
  EXPECT_EQ(columns.rows(), 0);
  EXPECT_TRUE(columns.column(0).ints.empty());
  EXPECT_TRUE(columns.column(3).ints.empty());
  EXPECT_THAT(columns.column(3).offsets, ElementsAre(0));
  EXPECT_EQ(columns.column(0).ints.capacity(), capacity);
}

TEST(ColumnsTest, StoredBytesAreNotMoved) {
  Columns columns(OneOfEach());
  for (int round = 0; round < 2; ++round) {
    std::vector<std::string> expected;
    std::vector<std::string_view> stored;
    for (int i = 0; i < 2000; ++i) {
      expected.emplace_back(static_cast<size_t>(i % 300), static_cast<char>('a' + i % 26));
      if (i % 500 == 7) expected.back().assign(200'000, 'L');
      stored.push_back(columns.Store(expected.back()));
    }
    for (size_t i = 0; i < stored.size(); ++i) ASSERT_EQ(stored[i], expected[i]) << i;
    columns.Clear();
  }
}

TEST(ColumnsTest, KeepsMemoryUntilClear) {
  Columns columns(OneOfEach());
  auto memory = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = memory;
  columns.KeepAlive(memory);
  columns.KeepAlive(memory);
  memory.reset();
  EXPECT_FALSE(watch.expired());
  columns.Clear();
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace muster::formats
