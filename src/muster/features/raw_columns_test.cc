#include "muster/features/raw_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "muster/formats/image_test_util.h"

namespace muster::features {
namespace {

using formats::DataType;
using testing::ElementsAre;
using testing::HasSubstr;

template <class Number>
std::vector<Number> Numbers(const RawColumn& column) {
  std::vector<Number> numbers(column.bytes.size() / sizeof(Number));
  std::memcpy(numbers.data(), column.bytes.data(), column.bytes.size());
  return numbers;
}

std::vector<std::string> Strings(const RawColumn& column) {
  std::vector<std::string> strings;
  for (size_t i = 0; i + 1 < column.offsets.size(); ++i) {
    strings.emplace_back(reinterpret_cast<const char*>(column.bytes.data()) + column.offsets[i],
                         column.offsets[i + 1] - column.offsets[i]);
  }
  return strings;
}

// One column over one field, and a label.
class RawColumnsTest : public testing::Test {
 protected:
  void Use(DataType type, std::vector<int64_t> shape, std::string decode = "") {
    const RawColumnSpecs columns = {
        .inputs = {{"x", "field", type, std::move(shape), std::move(decode)}},
        .labels = {{"y", "label", DataType::kFloat, {}, ""}}};
    auto schema = RawSchema(columns, true, false);
    ASSERT_TRUE(schema.ok()) << schema.status();
    schema_ = *schema;
    auto transform = NewRawTransform(columns, schema_);
    ASSERT_TRUE(transform.ok()) << transform.status();
    transform_ = *std::move(transform);
    rows_.emplace(schema_);
  }

  void AddInts(std::vector<int64_t> values) {
    auto& ints = rows_->mutable_column(0).ints;
    ints.insert(ints.end(), values.begin(), values.end());
    AddRow();
  }
  void AddFloats(std::vector<float> values) {
    auto& floats = rows_->mutable_column(0).floats;
    floats.insert(floats.end(), values.begin(), values.end());
    AddRow();
  }
  void AddStrings(std::vector<std::string_view> values) {
    auto& strings = rows_->mutable_column(0).strings;
    strings.insert(strings.end(), values.begin(), values.end());
    AddRow();
  }
  void AddRow() {
    rows_->mutable_column(1).floats.push_back(static_cast<float>(rows_->rows()));
    rows_->AddRow();
  }

  const RawColumn& Read() {
    const absl::Status status = transform_->Apply(*rows_, true, &batch_, &bad_row_);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(batch_.rows, rows_->rows());
    EXPECT_EQ(batch_.raw.size(), 2u);
    return batch_.raw[0];
  }
  std::string Error() {
    return std::string(transform_->Apply(*rows_, true, &batch_, &bad_row_).message());
  }

  formats::Schema schema_;
  std::unique_ptr<FeatureTransform> transform_;
  std::optional<formats::Columns> rows_;
  FeatureBatch batch_;
  int bad_row_ = -1;
};

TEST_F(RawColumnsTest, NumbersBecomeTheTypeOfTheModel) {
  Use(DataType::kInt32, {2});
  AddInts({1, -2});
  AddInts({3, 2147483647});
  const RawColumn& column = Read();
  EXPECT_EQ(column.type, DataType::kInt32);
  EXPECT_THAT(column.shape, ElementsAre(2));
  EXPECT_THAT(Numbers<int32_t>(column), ElementsAre(1, -2, 3, 2147483647));
  EXPECT_THAT(Numbers<float>(batch_.raw[1]), ElementsAre(0, 1));
}

TEST_F(RawColumnsTest, ANumberThatTheTypeCannotHoldIsReportedWithItsRow) {
  Use(DataType::kUint8, {2});
  AddInts({0, 255});
  AddInts({1, 256});
  EXPECT_THAT(Error(),
              HasSubstr("field 'field' (x of the model) has 256, the model takes uint8 [2]"));
  EXPECT_EQ(bad_row_, 1);
}

TEST_F(RawColumnsTest, AWrongNumberOfValuesIsReportedWithTheRightOne) {
  Use(DataType::kFloat, {2, 2});
  AddFloats({1, 2, 3, 4});
  AddFloats({1, 2, 3});
  EXPECT_THAT(Error(), HasSubstr("has 3 values, the model takes float32 [2, 2]"));
  EXPECT_EQ(bad_row_, 1);
}

TEST_F(RawColumnsTest, AnyLengthIsPaddedToTheLongestOfTheBatch) {
  Use(DataType::kInt64, {kAnySize, 2});
  AddInts({1, 2});
  AddInts({});
  AddInts({3, 4, 5, 6});
  const RawColumn& column = Read();
  EXPECT_THAT(column.shape, ElementsAre(2, 2));
  EXPECT_THAT(Numbers<int64_t>(column), ElementsAre(1, 2, 0, 0, 0, 0, 0, 0, 3, 4, 5, 6));
}

TEST_F(RawColumnsTest, ABatchOfEmptyListsHasOneStep) {
  Use(DataType::kString, {kAnySize});
  AddStrings({});
  AddStrings({});
  const RawColumn& column = Read();
  EXPECT_THAT(column.shape, ElementsAre(1));
  EXPECT_THAT(Strings(column), ElementsAre("", ""));
}

TEST_F(RawColumnsTest, StringsArePaddedWithEmptyOnes) {
  Use(DataType::kString, {kAnySize});
  AddStrings({"a", "bc"});
  AddStrings({"d"});
  EXPECT_THAT(Strings(Read()), ElementsAre("a", "bc", "d", ""));
}

TEST_F(RawColumnsTest, HalvesAreRoundedToEven) {
  Use(DataType::kHalf, {7});
  AddFloats({1, 1.0f / 3, 65504, 65520, 5.9604645e-8f, -0.0f, 2049});
  EXPECT_THAT(Numbers<uint16_t>(Read()),
              ElementsAre(0x3c00, 0x3555, 0x7bff, 0x7c00, 0x0001, 0x8000, 0x6800));
}

TEST_F(RawColumnsTest, Bfloat16IsRoundedToEven) {
  Use(DataType::kBfloat16, {3});
  AddFloats({1, 1.00390625f, 1.01171875f});
  EXPECT_THAT(Numbers<uint16_t>(Read()), ElementsAre(0x3f80, 0x3f80, 0x3f82));
}

TEST_F(RawColumnsTest, RawBytesAreNotChanged) {
  Use(DataType::kUint8, {2, 2}, "raw");
  AddStrings({std::string_view("\1\2\3\4", 4)});
  EXPECT_THAT(Numbers<uint8_t>(Read()), ElementsAre(1, 2, 3, 4));
  AddStrings({"abc"});
  EXPECT_THAT(Error(), HasSubstr("has 3 bytes, the model takes uint8 [2, 2]: 4 bytes"));
}

TEST_F(RawColumnsTest, ImagesAreLeftToTheEngine) {
  Use(DataType::kUint8, {28, 20, 1}, "png");
  const std::string png = formats::TestPng(28, 20), jpeg = formats::TestJpeg(28, 20);
  AddStrings({png});
  AddStrings({jpeg});  // TensorFlow decodes JPEG as well
  const RawColumn& column = Read();
  EXPECT_EQ(column.type, DataType::kString);
  EXPECT_THAT(Strings(column), ElementsAre(png, jpeg));
}

TEST_F(RawColumnsTest, BytesThatAreNoImageAreBadRows) {
  Use(DataType::kUint8, {28, 20, 1}, "png");
  const std::string png = formats::TestPng(28, 20), turned = formats::TestPng(20, 28);
  AddStrings({png});
  AddStrings({std::string_view(png).substr(0, 60)});
  EXPECT_THAT(Error(), HasSubstr("(x of the model): a broken PNG file: it is cut at byte 60"));
  EXPECT_EQ(bad_row_, 1);
  Use(DataType::kUint8, {28, 20, 1}, "png");
  AddStrings({turned});
  EXPECT_THAT(Error(), HasSubstr("20 x 28 pixels, the model takes uint8 [28, 20, 1]"));
  EXPECT_EQ(bad_row_, 0);
}

TEST_F(RawColumnsTest, NoRowsAreNoError) {
  Use(DataType::kInt64, {kAnySize});
  EXPECT_THAT(Read().shape, ElementsAre(1));
}

std::string SchemaError(const RawColumnSpecs& columns) {
  return std::string(RawSchema(columns, true, false).status().message());
}

TEST(RawSchemaTest, ColumnsThatNoRecordCanHaveAreRefused) {
  constexpr auto kComplex = static_cast<DataType>(8);
  EXPECT_THAT(SchemaError({.inputs = {{"x", "f", kComplex, {2}, ""}}}),
              HasSubstr("which no record has"));
  EXPECT_THAT(SchemaError({.inputs = {{"x", "f", DataType::kFloat, {kAnySize, kAnySize}, ""}}}),
              HasSubstr("only one length that varies"));
  EXPECT_THAT(SchemaError({.inputs = {{"x", "f", DataType::kFloat, {kAnySize}, "raw"}}}),
              HasSubstr("raw bytes need a shape"));
  EXPECT_THAT(SchemaError({.inputs = {{"x", "f", DataType::kFloat, {2}, ""}},
                           .labels = {{"y", "f", DataType::kInt64, {}, ""}}}),
              HasSubstr("something else from the same field"));
}

TEST(RawSchemaTest, AFieldThatTwoColumnsReadAppearsOnce) {
  const auto schema = RawSchema(
      {.inputs = {{"x", "f", DataType::kInt32, {2}, ""}, {"z", "f", DataType::kInt64, {2}, ""}},
       .labels = {{"y", "g", DataType::kInt64, {}, ""}}},
      false, false);
  ASSERT_TRUE(schema.ok()) << schema.status();
  ASSERT_EQ(schema->fields.size(), 1u);
  EXPECT_EQ(schema->fields[0].name, "f");
  EXPECT_TRUE(schema->fields[0].list);
}

TEST(RawSchemaTest, TheKeyIsAFieldIfRequested) {
  RawColumnSpecs columns = {.inputs = {{"x", "f", DataType::kInt32, {}, ""}},
                            .key = {{"key", "id", DataType::kInt64, {}, ""}}};
  EXPECT_EQ(RawSchema(columns, false, false)->fields.size(), 1u);
  const auto schema = RawSchema(columns, false, true);
  ASSERT_TRUE(schema.ok()) << schema.status();
  ASSERT_EQ(schema->fields.size(), 2u);
  EXPECT_EQ(schema->fields[1].name, "id");
  EXPECT_EQ(schema->fields[1].type, formats::ValueType::kInt);
  columns.key->feature = "f";  // an input is also the key
  EXPECT_EQ(RawSchema(columns, false, true)->fields.size(), 1u);
  columns.key->type = DataType::kString;
  EXPECT_THAT(RawSchema(columns, false, true).status().message(),
              HasSubstr("something else from the same field"));
}

}  // namespace
}  // namespace muster::features
