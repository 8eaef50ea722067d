#include "muster/formats/example.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "muster/base/random.h"
#include "muster/formats/example_test_util.h"

namespace muster::formats {
namespace {

using testing::ElementsAre;

Schema MixedSchema() {
  Schema schema;
  schema.fields = {
      TypedField("z", ValueType::kInt),          TypedField("a", ValueType::kFloat),
      TypedField("aa", ValueType::kString),      TypedField("li", ValueType::kInt, true),
      TypedField("lf", ValueType::kFloat, true), TypedField("ls", ValueType::kString, true)};
  return schema;
}

// tf.train.Example(...).SerializeToString(deterministic=True), TensorFlow 2.15 with protobuf 4.25
// (its implementation "python"; "upb" puts "aa" before "a", see docs/formats/example.md):
// a = -1.5, aa = b"\xff", lf = [], li = [-1, 300], ls = [b"", b"x"], z = 7.
constexpr unsigned char kFromTensorFlow[] = {
    0x0a, 0x59, 0x0a, 0x0d, 0x0a, 0x01, 0x61, 0x12, 0x08, 0x12, 0x06, 0x0a, 0x04, 0x00, 0x00, 0xc0,
    0xbf, 0x0a, 0x0b, 0x0a, 0x02, 0x61, 0x61, 0x12, 0x05, 0x0a, 0x03, 0x0a, 0x01, 0xff, 0x0a, 0x08,
    0x0a, 0x02, 0x6c, 0x66, 0x12, 0x02, 0x12, 0x00, 0x0a, 0x16, 0x0a, 0x02, 0x6c, 0x69, 0x12, 0x10,
    0x1a, 0x0e, 0x0a, 0x0c, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0xac, 0x02,
    0x0a, 0x0d, 0x0a, 0x02, 0x6c, 0x73, 0x12, 0x07, 0x0a, 0x05, 0x0a, 0x00, 0x0a, 0x01, 0x78, 0x0a,
    0x0a, 0x0a, 0x01, 0x7a, 0x12, 0x05, 0x1a, 0x03, 0x0a, 0x01, 0x07};

TEST(ExampleEncoderTest, KnownBytes) {
  Columns columns(MixedSchema());
  columns.mutable_column(0).ints = {7};
  columns.mutable_column(1).floats = {-1.5f};
  columns.mutable_column(2).strings = {"\xff"};
  columns.mutable_column(3).ints = {-1, 300};
  columns.mutable_column(5).strings = {"", "x"};
  columns.AddRow();
  std::string record;
  ExampleEncoder(MixedSchema()).Encode(columns, 0, &record);
  EXPECT_EQ(record,
            std::string(reinterpret_cast<const char*>(kFromTensorFlow), sizeof kFromTensorFlow));
}

TEST(ExampleEncoderTest, NoFields) {
  Columns columns{Schema()};
  columns.AddRow();
  std::string record = "old";
  ExampleEncoder(Schema()).Encode(columns, 0, &record);
  EXPECT_EQ(record, std::string("\x0a\0", 2));
}

std::string RandomBytes(RandomStream* random) {
  constexpr size_t kSizes[] = {0, 1, 8, 90, 120, 126, 130, 20'000};
  std::string bytes(kSizes[random->Below(std::size(kSizes))], '\0');
  for (char& byte : bytes) byte = static_cast<char>(random->Next32());
  return bytes;
}

int64_t RandomInt(RandomStream* random) {
  return static_cast<int64_t>(random->Next64() >> random->Below(64)) * (random->Below(2) ? 1 : -1);
}

TEST(ExampleEncoderTest, WhatIsEncodedIsDecoded) {
  const uint64_t seed = 20261121;
  SCOPED_TRACE(StrCat("seed ", seed));
  RandomStream random(seed, RandomPurpose::kSampleData, 0);
  const Schema schema = MixedSchema();
  const ExampleEncoder encoder(schema);
  const std::unique_ptr<RowDecoder> decoder = NewExampleDecoder(schema);
  Columns columns(schema), decoded(schema);
  std::vector<std::unique_ptr<std::string>> records;
  for (int row = 0; row < 300; ++row) {
    columns.mutable_column(0).ints.push_back(RandomInt(&random));
    columns.mutable_column(1).floats.push_back(random.Uniform());
    columns.mutable_column(2).strings.push_back(columns.Store(RandomBytes(&random)));
    for (uint64_t n = random.Below(5); n > 0; --n) {
      columns.mutable_column(3).ints.push_back(RandomInt(&random));
      columns.mutable_column(5).strings.push_back(columns.Store(RandomBytes(&random)));
    }
    for (uint64_t n = random.Below(100); n > 0; --n) {
      columns.mutable_column(4).floats.push_back(random.Uniform());
    }
    columns.AddRow();
    records.push_back(std::make_unique<std::string>());
    encoder.Encode(columns, row, records.back().get());
    ASSERT_TRUE(decoder->Decode(*records.back(), &decoded).ok());
  }
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const Column &expected = columns.column(static_cast<int>(i)),
                 &found = decoded.column(static_cast<int>(i));
    EXPECT_EQ(found.ints, expected.ints);
    EXPECT_EQ(found.floats, expected.floats);
    EXPECT_EQ(found.strings, expected.strings);
    EXPECT_EQ(found.offsets, expected.offsets);
  }
}

MATCHER_P3(IsFeature, name, kind, values, "") {
  return arg.name == name && arg.kind == kind && testing::Value(arg.values, values);
}

// Lengths below and above what one byte holds; compared with messages assembled by hand.
TEST(ExampleEncoderTest, NamesAndValuesOfAnyLength) {
  const auto field = [](char tag, const std::string& bytes) {
    std::string text(1, tag);
    if (bytes.size() >= 0x80) text += static_cast<char>(bytes.size() % 0x80 + 0x80);
    return text + static_cast<char>(bytes.size() >= 0x80 ? bytes.size() / 0x80 : bytes.size()) +
           bytes;
  };
  for (size_t name : {1, 8, 21, 22, 23, 24, 30, 100, 130}) {
    for (size_t value : {0, 1, 60, 95, 96, 97, 98, 99, 100, 110, 118, 119, 120, 121, 122, 300}) {
      const Schema schema = {{TypedField(std::string(name, 'n'), ValueType::kString)}};
      const std::string text(value, 'v');
      Columns columns(schema);
      columns.mutable_column(0).strings = {text};
      columns.AddRow();
      std::string record;
      ExampleEncoder(schema).Encode(columns, 0, &record);
      const std::string feature = field('\x0a', field('\x0a', text));
      const std::string entry = field('\x0a', std::string(name, 'n')) + field('\x12', feature);
      ASSERT_EQ(record, field('\x0a', field('\x0a', entry))) << name << " " << value;
    }
  }
}

TEST(DescribeExampleTest, PrintsValues) {
  const std::string record = WireExample(
      WireEntry("i", WireBytes(3, WireBytes(1, WireVarint(5) + WireVarint(~uint64_t{0})))) +
      WireEntry("f", WireBytes(2, WireBytes(1, WireFloat(0.1f) + WireFloat(INFINITY)))) +
      WireEntry("s", WireBytes(1, WireBytes(1, "h\xc3\xa9") + WireBytes(1, "\xff"))) +
      WireEntry("n", "") + WireEntry("i", IntFeature(7)));
  const auto features = DescribeExample(record);
  ASSERT_TRUE(features.ok()) << features.status();
  EXPECT_THAT(*features, ElementsAre(IsFeature("i", "int64", ElementsAre("7")),
                                     IsFeature("f", "float", ElementsAre("0.1", "inf")),
                                     IsFeature("s", "bytes", ElementsAre("h\xc3\xa9", "\\xff")),
                                     IsFeature("n", "none", ElementsAre())));
}

TEST(DescribeExampleTest, KnowsUtf8) {
  const auto shown = [](std::string_view bytes) {
    return DescribeExample(WireExample(WireEntry("s", BytesFeature(bytes)))).value()[0].values[0];
  };
  for (const std::string_view text : {"", "plain", "\xc2\x80", "\xe0\xa0\x80", "\xef\xbf\xbf",
                                      "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(shown(text), text);
  }
  for (const std::string_view bytes :
       {"\x80", "\xc1\x81", "\xc2", "\xe0\x9f\x80", "\xed\xa0\x80", "\xf0\x8f\x80\x80",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x28\xa1", "\xe2\x82"}) {
    EXPECT_EQ(shown(bytes).substr(0, 2), "\\x") << testing::PrintToString(bytes);
  }
}

TEST(DescribeExampleTest, RefusesWhatIsNoExample) {
  EXPECT_TRUE(absl::IsDataLoss(DescribeExample("\x0a\x05").status()));
  EXPECT_TRUE(absl::IsDataLoss(DescribeExample(WireExample(WireEntry("a", "\x0a\x09"))).status()));
  EXPECT_TRUE(DescribeExample("").value().empty());
}

}  // namespace
}  // namespace muster::formats
