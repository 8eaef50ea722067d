#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "muster/formats/example.h"
#include "muster/formats/example_test_util.h"

namespace muster::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr ValueType kInt = ValueType::kInt, kFloat = ValueType::kFloat,
                    kString = ValueType::kString;

// Decodes records into one Columns. Every record is also decoded by a decoder that has seen it
// before, and so takes the fast path: both must agree.
class ExampleDecoderTest : public testing::Test {
 protected:
  void Use(std::vector<Field> fields) {
    schema_.fields = std::move(fields);
    columns_ = std::make_unique<Columns>(schema_);
    decoder_ = NewExampleDecoder(schema_);
  }

  absl::Status Decode(const std::string& record) {
    records_.push_back(std::make_unique<std::string>(record));
    const std::string_view kept = *records_.back();
    absl::Status status = decoder_->Decode(kept, columns_.get());
    Columns twice(schema_);
    const std::unique_ptr<RowDecoder> second = NewExampleDecoder(schema_);
    second->Decode(kept, &twice).IgnoreError();
    EXPECT_EQ(second->Decode(kept, &twice), status);
    if (status.ok()) {
      EXPECT_EQ(twice.rows(), 2);
      const std::string again = LastRow(twice), once = LastRow(*columns_);
      EXPECT_EQ(again, once);
    }
    return status;
  }

  absl::Status DecodeEntries(const std::string& entries) { return Decode(WireExample(entries)); }

  std::string LastRow(const Columns& columns) const {
    std::string record;
    ExampleEncoder(schema_).Encode(columns, columns.rows() - 1, &record);
    return record;
  }

  const Column& column(int i) const { return columns_->column(i); }

  Schema schema_;
  std::unique_ptr<Columns> columns_;
  std::unique_ptr<RowDecoder> decoder_;
  std::vector<std::unique_ptr<std::string>> records_;
};

TEST_F(ExampleDecoderTest, TheUsualForm) {
  Use({TypedField("a", kInt), TypedField("b", kFloat), TypedField("c", kString)});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(DecodeEntries(WireEntry("a", IntFeature(i - 1)) +
                              WireEntry("b", FloatFeature(0.5f * static_cast<float>(i))) +
                              WireEntry("c", BytesFeature(StrCat("text", i))))
                    .ok());
  }
  EXPECT_EQ(columns_->rows(), 3);
  EXPECT_THAT(column(0).ints, ElementsAre(-1, 0, 1));
  EXPECT_THAT(column(1).floats, ElementsAre(0.0f, 0.5f, 1.0f));
  EXPECT_THAT(column(2).strings, ElementsAre("text0", "text1", "text2"));
}

TEST_F(ExampleDecoderTest, StringsAreNotCopied) {
  Use({TypedField("c", kString)});
  ASSERT_TRUE(DecodeEntries(WireEntry("c", BytesFeature("text"))).ok());
  const std::string& record = *records_[0];
  const char* data = column(0).strings[0].data();
  EXPECT_TRUE(data >= record.data() && data < record.data() + record.size());
}

TEST_F(ExampleDecoderTest, ValuesOfEverySize) {
  Use({TypedField("a", kInt), TypedField("a name of more than eight bytes", kString)});
  for (const int64_t value :
       {int64_t{0}, int64_t{127}, int64_t{128}, int64_t{-1}, std::numeric_limits<int64_t>::max(),
        std::numeric_limits<int64_t>::min()}) {
    for (const size_t size : {0, 1, 80, 90, 100, 120, 123, 124, 125, 126, 127, 128, 20'000}) {
      const std::string text(size, 'x');
      ASSERT_TRUE(DecodeEntries(WireEntry("a name of more than eight bytes", BytesFeature(text)) +
                                WireEntry("a", IntFeature(value)))
                      .ok());
      EXPECT_EQ(column(0).ints.back(), value);
      EXPECT_EQ(column(1).strings.back(), text);
    }
  }
}

TEST_F(ExampleDecoderTest, LongNames) {
  for (const size_t size : {7, 8, 9, 99, 100, 101, 127, 128, 300}) {
    const std::string name(size, 'n');
    Use({TypedField(name, kInt)});
    ASSERT_TRUE(DecodeEntries(WireEntry(name, IntFeature(5)) +
                              WireEntry(name.substr(1), IntFeature(6)) +
                              WireEntry(name + "n", IntFeature(7)))
                    .ok());
    EXPECT_THAT(column(0).ints, ElementsAre(5)) << size;
  }
}

TEST_F(ExampleDecoderTest, AnyOrderAndOtherFeatures) {
  Use({TypedField("a", kInt), TypedField("b", kInt), TypedField("c", kInt)});
  const std::string a = WireEntry("a", IntFeature(1)), b = WireEntry("b", IntFeature(2)),
                    c = WireEntry("c", IntFeature(3)), other = WireEntry("x", BytesFeature("y")),
                    unnamed = WireEntry("", IntFeature(9));
  for (const std::string& entries :
       {StrCat(a, b, c), StrCat(c, b, a), StrCat(b, other, a, c), StrCat(other, c, a, b, other),
        StrCat(unnamed, a, b, c), StrCat(a, b, unnamed, c, unnamed), StrCat(a, b, c)}) {
    ASSERT_TRUE(DecodeEntries(entries).ok());
    EXPECT_EQ(column(0).ints.back(), 1);
    EXPECT_EQ(column(1).ints.back(), 2);
    EXPECT_EQ(column(2).ints.back(), 3);
  }
}

TEST_F(ExampleDecoderTest, ManyFeaturesThatTheSchemaDoesNotHave) {
  Use({TypedField("a", kInt)});
  for (int row = 0; row < 30; ++row) {
    std::string entries;
    for (int i = 0; i < 100; ++i) entries += WireEntry(StrCat(row, ":", i), IntFeature(i));
    ASSERT_TRUE(DecodeEntries(entries + WireEntry("a", IntFeature(row))).ok());
    EXPECT_EQ(column(0).ints.back(), row);
  }
}

TEST_F(ExampleDecoderTest, UnpackedAndPiecewiseLists) {
  Use({TypedField("i", kInt, true), TypedField("f", kFloat, true), TypedField("s", kString, true)});
  const std::string one = WireVarint(8) + WireVarint(1);      // field 1, varint
  const std::string half = WireVarint(13) + WireFloat(0.5f);  // field 1, fixed32
  const std::string packed = WireBytes(1, WireVarint(2) + WireVarint(300));
  const std::string packed_floats = WireBytes(1, WireFloat(1) + WireFloat(2));
  ASSERT_TRUE(
      DecodeEntries(WireEntry("i", WireBytes(3, one + packed + one + WireBytes(1, ""))) +
                    WireEntry("f", WireBytes(2, half + packed_floats) + WireBytes(2, half)) +
                    WireEntry("s", WireBytes(1, WireBytes(1, "x")) +
                                       WireBytes(1, WireBytes(1, "") + WireBytes(1, "z"))))
          .ok());
  EXPECT_THAT(column(0).ints, ElementsAre(1, 2, 300, 1));
  EXPECT_THAT(column(1).floats, ElementsAre(0.5f, 1.0f, 2.0f, 0.5f));
  EXPECT_THAT(column(2).strings, ElementsAre("x", "", "z"));
  EXPECT_THAT(column(0).offsets, ElementsAre(0, 4));
}

TEST_F(ExampleDecoderTest, UnpackedScalars) {
  Use({TypedField("i", kInt), TypedField("f", kFloat)});
  ASSERT_TRUE(DecodeEntries(WireEntry("i", WireBytes(3, WireVarint(8) + WireVarint(77))) +
                            WireEntry("f", WireBytes(2, WireVarint(13) + WireFloat(0.5f))))
                  .ok());
  EXPECT_THAT(column(0).ints, ElementsAre(77));
  EXPECT_THAT(column(1).floats, ElementsAre(0.5f));
}

TEST_F(ExampleDecoderTest, OfDuplicateKeysTheLastWins) {
  Use({TypedField("a", kInt), TypedField("l", kInt, true)});
  const auto list = [](int64_t value) { return WireEntry("l", IntFeature(value)); };
  ASSERT_TRUE(DecodeEntries(WireEntry("a", IntFeature(1)) + list(1) + list(2) +
                            WireEntry("a", IntFeature(2)) + list(3))
                  .ok());
  EXPECT_THAT(column(0).ints, ElementsAre(2));
  EXPECT_THAT(column(1).ints, ElementsAre(3));
  // An empty feature wins too, also over one of a kind that would not fit.
  ASSERT_TRUE(DecodeEntries(WireEntry("a", IntFeature(1)) + list(1) +
                            WireEntry("l", WireBytes(3, "")) + WireEntry("a", IntFeature(7)))
                  .ok());
  EXPECT_THAT(column(1).offsets, ElementsAre(0, 1, 1));
  EXPECT_FALSE(
      DecodeEntries(WireEntry("a", IntFeature(1)) + WireEntry("a", WireBytes(3, ""))).ok());
}

TEST_F(ExampleDecoderTest, SeveralFeaturesMessagesAreMerged) {
  Use({TypedField("a", kInt), TypedField("b", kInt)});
  ASSERT_TRUE(Decode(WireExample(WireEntry("a", IntFeature(1)) + WireEntry("b", IntFeature(2))) +
                     WireExample("") + WireExample(WireEntry("a", IntFeature(3))))
                  .ok());
  EXPECT_THAT(column(0).ints, ElementsAre(3));
  EXPECT_THAT(column(1).ints, ElementsAre(2));
}

TEST_F(ExampleDecoderTest, TheLastKindOfAOneofWins) {
  Use({TypedField("l", kInt, true)});
  const std::string ints = IntFeature(1), floats = FloatFeature(2);
  ASSERT_TRUE(DecodeEntries(WireEntry("l", floats + ints)).ok());
  ASSERT_TRUE(DecodeEntries(WireEntry("l", ints + floats + IntFeature(5))).ok());
  ASSERT_TRUE(DecodeEntries(WireEntry("l", ints + WireBytes(2, ""))).ok())
      << "no values may be left";
  EXPECT_THAT(column(0).ints, ElementsAre(1, 5));
  EXPECT_THAT(column(0).offsets, ElementsAre(0, 1, 2, 2));
}

TEST_F(ExampleDecoderTest, AnEntryMayBeInAnyForm) {
  Use({TypedField("a", kInt), TypedField("", kInt)});
  const std::string key = WireBytes(1, "a"), five = WireBytes(2, IntFeature(5));
  const std::string unnamed = WireEntry("", IntFeature(9));
  const auto decode = [&](const std::string& entry) {
    const absl::Status status = DecodeEntries(unnamed + WireBytes(1, entry));
    EXPECT_TRUE(status.ok()) << status;
    return column(0).ints.back();
  };
  EXPECT_EQ(decode(key + five), 5);
  EXPECT_EQ(decode(five + key), 5) << "the value may come before the key";
  EXPECT_EQ(decode(WireBytes(1, "b") + five + key), 5) << "the last key must win";
  EXPECT_EQ(decode(WireBytes(7, "unknown") + key + WireVarint(0x50) + WireVarint(1) + five), 5);
  EXPECT_EQ(decode(key + WireBytes(2, FloatFeature(1)) + five), 5) << "values must be merged";
  EXPECT_EQ(decode("\x8a" + std::string(1, '\0') + key.substr(1) + five), 5)
      << "the tag may be longer than necessary";
  EXPECT_TRUE(DecodeEntries(WireBytes(1, five) + WireEntry("a", IntFeature(1))).ok());
  EXPECT_EQ(column(1).ints.back(), 5) << "without a key the name is \"\"";
}

TEST_F(ExampleDecoderTest, UnknownFieldsAreSkipped) {
  Use({TypedField("a", kInt)});
  const std::string start(1, static_cast<char>(WireTag(9, WireType::kStartGroup)));
  const std::string end(1, static_cast<char>(WireTag(9, WireType::kEndGroup)));
  const std::string fixed64 = WireVarint(WireTag(9, WireType::kFixed64)) + "12345678";
  const std::string group = start + start + fixed64 + end + WireBytes(3, "x") + end;
  const std::string varint_in_place_of_bytes = WireVarint(8) + WireVarint(3);
  for (const std::string& odd : {group, fixed64, WireBytes(500, "x"), varint_in_place_of_bytes}) {
    const std::string a = WireEntry("a", StrCat(odd, IntFeature(5), odd));
    ASSERT_TRUE(Decode(StrCat(odd, WireExample(StrCat(odd, a, odd)), odd)).ok());
    EXPECT_EQ(column(0).ints.back(), 5);
  }
}

TEST_F(ExampleDecoderTest, Defaults) {
  Field i = TypedField("i", kInt), f = TypedField("f", kFloat), s = TypedField("s", kString);
  i.has_default = f.has_default = s.has_default = true;
  i.default_value = int64_t{-7};
  f.default_value = 0.25f;
  s.default_value = std::string("none");
  Use({i, f, s, TypedField("l", kFloat, true)});
  const std::string kindless = WireEntry("i", "") + WireEntry("f", "") + WireEntry("s", "");
  const std::string empty = WireEntry("i", WireBytes(3, "")) + WireEntry("f", WireBytes(2, "")) +
                            WireEntry("s", WireBytes(1, "")) + WireEntry("l", WireBytes(2, ""));
  const std::string other_kind = WireEntry("i", WireBytes(1, ""));
  for (const std::string& record : {std::string(), WireExample(""), WireExample(kindless),
                                    WireExample(empty), WireExample(other_kind)}) {
    ASSERT_TRUE(Decode(record).ok());
    EXPECT_EQ(column(0).ints.back(), -7);
    EXPECT_EQ(column(1).floats.back(), 0.25f);
    EXPECT_EQ(column(2).strings.back(), "none");
  }
  EXPECT_THAT(column(3).offsets, ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST_F(ExampleDecoderTest, IntsForFloats) {
  Use({TypedField("f", kFloat), TypedField("l", kFloat, true)});
  ASSERT_TRUE(DecodeEntries(WireEntry("f", IntFeature(-3)) + WireEntry("l", IntFeature(4))).ok());
  EXPECT_THAT(column(0).floats, ElementsAre(-3.0f));
  EXPECT_THAT(column(1).floats, ElementsAre(4.0f));
}

TEST_F(ExampleDecoderTest, TruncatedFloats) {
  Field age = TypedField("age", kInt);
  age.truncate = true;
  Use({age});
  ASSERT_TRUE(DecodeEntries(WireEntry("age", FloatFeature(34.5f))).ok());
  ASSERT_TRUE(DecodeEntries(WireEntry("age", FloatFeature(-34.5f))).ok());
  EXPECT_THAT(column(0).ints, ElementsAre(34, -34));
  for (const float value : {std::nanf(""), INFINITY, 9.3e18f, -9.4e18f}) {
    const absl::Status status = DecodeEntries(WireEntry("age", FloatFeature(value)));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(column(0).ints, ElementsAre(34, -34));
}

TEST_F(ExampleDecoderTest, DatesAreSeconds) {
  Field day = TypedField("day", kInt);
  day.date = true;
  day.missing = {"never"};
  day.has_default = true;
  day.default_value = int64_t{7};
  Use({day});
  for (const char* text : {"1970-01-02", "never", ""}) {
    ASSERT_TRUE(DecodeEntries(WireEntry("day", BytesFeature(text))).ok()) << text;
  }
  ASSERT_TRUE(DecodeEntries(WireEntry("day", IntFeature(60))).ok());
  EXPECT_THAT(column(0).ints, ElementsAre(86400, 7, 7, 60));
  EXPECT_THAT(std::string(DecodeEntries(WireEntry("day", BytesFeature("x"))).message()),
              HasSubstr("which is not a date"));
}

TEST_F(ExampleDecoderTest, ValuesThatDoNotFitAreReportedWithTheirColumn) {
  Use({TypedField("s", kString), TypedField("age", kInt)});
  const std::string s = WireEntry("s", BytesFeature("x"));
  const std::vector<std::pair<std::string, std::string>> cases = {
      {WireEntry("age", FloatFeature(34.5f)),
       "column 'age': the record has the float 34.5, but the schema says int"},
      {WireEntry("age", BytesFeature("x\n")),
       "column 'age': the record has the bytes 'x\\n', but the schema says int"},
      {WireEntry("age", BytesFeature(std::string(100, 'x'))),
       "column 'age': the record has the bytes '" + std::string(60, 'x') +
           "'..., but the schema says int"},
      {WireEntry("age", WireBytes(3, WireBytes(1, "\x05\x06"))),
       "column 'age': the record has 2 values (first the int64 5), but the schema says one"},
      {"", "column 'age': the record has no value for it, and it has no default"},
      {WireEntry("s", IntFeature(3)),
       "column 's': the record has the int64 3, but the schema says string"},
  };
  for (const auto& [entries, message] : cases) {
    const absl::Status status = DecodeEntries(s + entries);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_EQ(ToStd(status.message()), message);
    EXPECT_EQ(columns_->rows(), 0);
    EXPECT_TRUE(column(0).strings.empty()) << "a bad row must leave nothing";
  }
  ASSERT_TRUE(DecodeEntries(s + WireEntry("age", IntFeature(3))).ok());
  EXPECT_EQ(columns_->rows(), 1);
}

TEST_F(ExampleDecoderTest, BytesThatAreNoExampleAreRefused) {
  Use({TypedField("a", kInt, true)});
  const auto a = [](const std::string& list) { return WireExample(WireEntry("a", list)); };
  const std::vector<std::string> broken = {
      "\x0a",                                          // no length
      "\x0a\x05",                                      // a length beyond the end
      std::string("\x00\x00", 2),                      // field number 0
      "\x0b",                                          // a group that does not end
      "\x0c",                                          // the end of a group that did not begin
      "\x0f\x01",                                      // wire type 7
      std::string(11, '\xff'),                         // a varint of 11 bytes
      "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  // a length of 2^64 - 1
      WireExample("\x0a\x7f"),
      a(WireBytes(3, WireBytes(1, "\x80"))),          // a cut packed varint
      a(WireBytes(3, "\x08")),                        // no varint
      a(WireBytes(2, WireBytes(1, "\x01\x02\x03"))),  // three bytes of a float
      a(WireBytes(2, "\x0d\x01\x02\x03")),
      a("\x1a\x05"),
      a(WireBytes(1, "\x0a\x05")),
  };
  for (const std::string& record : broken) {
    const absl::Status status = Decode(record);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status << testing::PrintToString(record);
    EXPECT_THAT(std::string(status.message()), HasSubstr("not a tf.Example"));
    EXPECT_EQ(columns_->rows(), 0);
  }
}

TEST_F(ExampleDecoderTest, DeepGroupsAreRefused) {
  Use({TypedField("a", kInt, true)});
  EXPECT_TRUE(absl::IsDataLoss(Decode(std::string(1'000'000, '\x0b'))));
  const std::string deep = std::string(50, '\x0b') + std::string(50, '\x0c');
  EXPECT_TRUE(Decode(deep).ok());
}

TEST_F(ExampleDecoderTest, EveryCutOfARecordIsAnErrorOrAShorterExample) {
  Use({TypedField("i", kInt, true), TypedField("s", kString, true)});
  const std::string record =
      WireExample(WireEntry("i", IntFeature(300)) + WireEntry("s", BytesFeature("text")));
  for (size_t size = 1; size < record.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(Decode(record.substr(0, size)))) << size;
  }
  EXPECT_EQ(columns_->rows(), 0);
}

}  // namespace
}  // namespace muster::formats
