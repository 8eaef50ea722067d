#include "muster/data/parquet/parquet_block.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/data/parquet/parquet_decoder.h"
#include "muster/process/descriptor.h"

namespace muster::data {
namespace {

using formats::Field;
using formats::Json;
using formats::ValueType;

constexpr size_t kBytes = 4096;

Field MakeField(const char* name, ValueType type, std::optional<formats::Value> by_default = {}) {
  Field field;
  field.name = name;
  field.type = type;
  field.has_default = by_default.has_value();
  if (by_default) field.default_value = *by_default;
  return field;
}

// A segment with 3 rows of an int column, a float column with a null, texts and a list of ints.
class ParquetBlockTest : public testing::Test {
 protected:
  ParquetBlockTest() {
    PutAll<int16_t>(0, {7, -1, 300});
    PutAll<double>(64, {0.5, 0, 1.5});
    PutAll<uint8_t>(128, {0b1010});  // values 0 and 2, from bit 1 on
    PutAll<int32_t>(192, {2, 4, 4, 7});
    memory_.replace(256, 5, "abcde");
    PutAll<int32_t>(320, {2, 0, 1});
    PutAll<uint8_t>(384, {1, 2, 3});
    answer_ = Json::parse(R"({"rows": 3, "columns": [
        {"count": 3, "kind": "i16", "values": 0},
        {"count": 3, "kind": "f64", "values": 64, "valid": 128, "bit": 1},
        {"count": 3, "kind": "text", "offsets": 192, "values": 256, "bytes": 5},
        {"count": 3, "kind": "u8", "values": 384, "lengths": 320},
        null]})");
  }

  template <typename T>
  void PutAll(size_t at, std::initializer_list<T> values) {
    std::memcpy(memory_.data() + at, values.begin(), values.size() * sizeof(T));
  }

  absl::StatusOr<ParquetBlock> Parse(size_t columns = 5) const {
    const process::Descriptor file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(write(file.get(), memory_.data(), kBytes), static_cast<ssize_t>(kBytes));
    EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    auto segment = SharedSegment::Map(file.get(), kBytes);
    EXPECT_TRUE(segment.ok()) << segment.status();
    return ParseParquetBlock(answer_, columns, *std::move(segment));
  }

  std::string memory_ = std::string(kBytes, '\0');
  Json answer_;
};

TEST_F(ParquetBlockTest, RowsBecomeColumnsOneByOneAndInRuns) {
  const auto block = Parse();
  ASSERT_TRUE(block.ok()) << block.status();
  formats::Schema schema;
  schema.fields = {MakeField("i", ValueType::kInt), MakeField("x", ValueType::kFloat, 9.0F),
                   MakeField("word", ValueType::kString, std::string("none")),
                   MakeField("bag", ValueType::kInt),
                   MakeField("absent", ValueType::kInt, int64_t{4})};
  schema.fields[2].missing = {"cde"};
  schema.fields[3].list = true;
  ASSERT_TRUE(CheckKinds(*block, schema.fields).ok());
  std::vector<ParquetRow> rows;
  std::vector<std::string_view> records;
  for (uint64_t row = 0; row < 3; ++row) rows.push_back({&*block, row});
  for (const ParquetRow& row : rows) {
    records.emplace_back(reinterpret_cast<const char*>(&row), sizeof row);
  }
  const auto decoder = NewParquetDecoder(schema, {0, 1, 2, 3, 4});
  for (const bool in_runs : {false, true}) {
    formats::Columns columns(schema);
    size_t decoded = 0;
    if (in_runs) {
      ASSERT_TRUE(decoder->DecodeRun(records, &columns, &decoded).ok());
      EXPECT_EQ(decoded, 3);
    } else {
      for (const std::string_view record : records) {
        ASSERT_TRUE(decoder->Decode(record, &columns).ok());
      }
    }
    ASSERT_EQ(columns.rows(), 3);
    EXPECT_EQ(columns.column(0).ints, (std::vector<int64_t>{7, -1, 300}));
    EXPECT_EQ(columns.column(1).floats, (std::vector<float>{0.5F, 9, 1.5F}));
    EXPECT_EQ(columns.column(2).strings, (std::vector<std::string_view>{"ab", "", "none"}));
    EXPECT_EQ(columns.column(3).ints, (std::vector<int64_t>{1, 2, 3}));
    EXPECT_EQ(columns.column(3).offsets, (std::vector<uint32_t>{0, 2, 2, 3}));
    EXPECT_EQ(columns.column(4).ints, (std::vector<int64_t>{4, 4, 4}));
  }
}

TEST_F(ParquetBlockTest, ARowWithoutAValueLeavesNothing) {
  const auto block = Parse();
  ASSERT_TRUE(block.ok()) << block.status();
  formats::Schema schema;
  schema.fields = {MakeField("bag", ValueType::kInt), MakeField("x", ValueType::kFloat)};
  schema.fields[0].list = true;
  const ParquetRow rows[] = {{&*block, 0}, {&*block, 1}};
  const std::string_view records[] = {{reinterpret_cast<const char*>(&rows[0]), sizeof rows[0]},
                                      {reinterpret_cast<const char*>(&rows[1]), sizeof rows[1]}};
  formats::Columns columns(schema);
  size_t decoded = 0;
  const absl::Status status =
      NewParquetDecoder(schema, {3, 1})->DecodeRun(records, &columns, &decoded);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(decoded, 1);
  EXPECT_EQ(columns.rows(), 1);
  EXPECT_EQ(columns.column(0).ints.size(), 2);
}

TEST_F(ParquetBlockTest, WhatDoesNotFitTheMemoryIsAnError) {
  EXPECT_TRUE(absl::IsDataLoss(Parse(4).status()));
  const std::pair<const char*, Json> changes[] = {
      {"/columns/0/values", 4092},   {"/columns/0/values", 1},         {"/columns/0/values", -2},
      {"/columns/0/count", 2},       {"/columns/0/kind", "i24"},       {"/columns/0", 5},
      {"/columns/1/valid", 4096},    {"/columns/2/bytes", 4},          {"/columns/2/bytes", 6},
      {"/columns/2/offsets", 4088},  {"/columns/2/values", 4094},      {"/columns/3/count", 4},
      {"/columns/3/lengths", 40000}, {"/columns/1/values", 1LL << 62}, {"/rows", 2},
  };
  const Json whole = answer_;
  for (const auto& [where, value] : changes) {
    answer_ = whole;
    answer_[Json::json_pointer(where)] = value;
    EXPECT_FALSE(Parse().ok()) << where << " " << value;
  }
  answer_ = whole;
  PutAll<int32_t>(192, {2, 8, 4, 7});
  EXPECT_TRUE(absl::IsDataLoss(Parse().status())) << "a text that ends before it begins";
  PutAll<int32_t>(192, {2, 4, 4, 7});
  PutAll<int32_t>(320, {2, -1, 2});
  EXPECT_TRUE(absl::IsDataLoss(Parse().status())) << "a list of less than no values";
}

TEST_F(ParquetBlockTest, MemoryThatCouldBeCutIsRefused) {
  const process::Descriptor file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(file.get(), kBytes), 0);
  EXPECT_TRUE(absl::IsDataLoss(SharedSegment::Map(file.get(), kBytes).status()));
  ASSERT_EQ(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_TRUE(absl::IsDataLoss(SharedSegment::Map(file.get(), kBytes + 1).status()));
  EXPECT_TRUE(SharedSegment::Map(file.get(), kBytes).ok());
}

TEST_F(ParquetBlockTest, OtherKindsThanAskedForAreAnError) {
  const auto block = Parse();
  ASSERT_TRUE(block.ok()) << block.status();
  const std::vector<Field> fields = {MakeField("i", ValueType::kFloat),
                                     MakeField("x", ValueType::kInt)};
  EXPECT_TRUE(absl::IsInternal(CheckKinds(*block, fields)));
}

}  // namespace
}  // namespace muster::data
