#include "muster/formats/batch_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "muster/formats/batch_stream_test_util.h"

namespace muster::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Field StreamField(std::string name, ValueType type, bool list = false) {
  Field field;
  field.name = std::move(name);
  field.type = type;
  field.list = list;
  return field;
}

const std::vector<TestStreamColumn>& StreamColumns() {
  static const auto* columns = new std::vector<TestStreamColumn>{
      {"age", ValueType::kInt},         {"gain", ValueType::kFloat},
      {"job", ValueType::kString},      {"tags", ValueType::kString, true},
      {"codes", ValueType::kInt, true},
  };
  return *columns;
}

std::string StreamPayload() {
  return TestNumbers<int64_t>({-1, int64_t{1} << 40}) + TestNumbers<float>({0.5f, -2.0f}) +
         TestStrings({"clerk", ""}) + TestNumbers<uint32_t>({2, 0}) + TestStrings({"a", "bc"}) +
         TestNumbers<uint32_t>({0, 3}) + TestNumbers<int64_t>({7, 8, 9});
}

FramePrefix GetPrefix(uint32_t rows, const std::string& payload) {
  return {rows, TestCrc(payload), payload.size()};
}

absl::Status DecodePayload(const Schema& schema, uint32_t rows, const std::string& payload,
                           Columns* columns) {
  auto decoder = BatchStreamDecoder::Create(TestStreamHeader(StreamColumns()), schema);
  if (!decoder.ok()) return decoder.status();
  return (*decoder)->Decode(GetPrefix(rows, payload), std::make_shared<const std::string>(payload),
                            columns);
}

TEST(BatchStreamTest, ABatchBecomesColumnsInTheSchemasOrder) {
  const Schema schema = {
      {StreamField("tags", ValueType::kString, true), StreamField("age", ValueType::kInt),
       StreamField("codes", ValueType::kInt, true), StreamField("job", ValueType::kString),
       StreamField("gain", ValueType::kFloat)}};
  Columns columns(schema);
  ASSERT_TRUE(DecodePayload(schema, 2, StreamPayload(), &columns).ok());
  EXPECT_EQ(columns.rows(), 2);
  EXPECT_THAT(columns.column(0).strings, ElementsAre("a", "bc"));
  EXPECT_THAT(columns.column(0).offsets, ElementsAre(0, 2, 2));
  EXPECT_THAT(columns.column(1).ints, ElementsAre(-1, int64_t{1} << 40));
  EXPECT_THAT(columns.column(2).ints, ElementsAre(7, 8, 9));
  EXPECT_THAT(columns.column(2).offsets, ElementsAre(0, 0, 3));
  EXPECT_THAT(columns.column(3).strings, ElementsAre("clerk", ""));
  EXPECT_THAT(columns.column(4).floats, ElementsAre(0.5f, -2.0f));
}

TEST(BatchStreamTest, IntsFillFloatsOneValueFillsAListAndAbsentColumnsTakeDefaults) {
  Field state = StreamField("state", ValueType::kString);
  state.has_default = true;
  state.default_value = std::string("none");
  const Schema schema = {{StreamField("age", ValueType::kFloat),
                          StreamField("job", ValueType::kString, true), state,
                          StreamField("more", ValueType::kFloat, true)}};
  Columns columns(schema);
  ASSERT_TRUE(DecodePayload(schema, 2, StreamPayload(), &columns).ok());
  EXPECT_THAT(columns.column(0).floats, ElementsAre(-1.0f, 0x1p40f));
  EXPECT_THAT(columns.column(1).strings, ElementsAre("clerk", ""));
  EXPECT_THAT(columns.column(1).offsets, ElementsAre(0, 1, 2));
  EXPECT_THAT(columns.column(2).strings, ElementsAre("none", "none"));
  EXPECT_THAT(columns.column(3).floats, IsEmpty());
  EXPECT_THAT(columns.column(3).offsets, ElementsAre(0, 0, 0));
}

TEST(BatchStreamTest, ColumnsThatDoNotFitTheSchemaAreReported) {
  const std::string header = TestStreamHeader(StreamColumns());
  const auto refused = [&](const Field& field) {
    const absl::Status status = BatchStreamDecoder::Create(header, {{field}}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refused(StreamField("wage", ValueType::kInt)), HasSubstr("no column 'wage'"));
  EXPECT_THAT(refused(StreamField("gain", ValueType::kInt)),
              HasSubstr("'gain' of the stream is float, but the model file says int"));
  EXPECT_THAT(refused(StreamField("tags", ValueType::kString)), HasSubstr("is a list"));
}

TEST(BatchStreamTest, EveryCutAndEveryFlippedByteOfABatchIsDataLoss) {
  const Schema schema = {{StreamField("job", ValueType::kString)}};
  const std::string payload = StreamPayload();
  auto decoder = BatchStreamDecoder::Create(TestStreamHeader(StreamColumns()), schema).value();
  for (size_t size = 0; size < payload.size(); ++size) {
    const std::string cut = payload.substr(0, size);
    Columns columns(schema);
    const auto status =
        decoder->Decode(GetPrefix(2, cut), std::make_shared<std::string>(cut), &columns);
    EXPECT_TRUE(absl::IsDataLoss(status)) << size << " bytes: " << status;

    std::string flipped = payload;
    flipped[size] ^= 1;
    EXPECT_TRUE(absl::IsDataLoss(
        decoder->Decode(GetPrefix(2, payload), std::make_shared<std::string>(flipped), &columns)));
  }
  Columns columns(schema);
  const absl::Status longer = DecodePayload(schema, 2, payload + "x", &columns);
  EXPECT_THAT(std::string(longer.message()), HasSubstr("bytes after its last column"));
}

TEST(BatchStreamTest, LengthsBeyondTheDataAreDataLoss) {
  const Schema schema = {{StreamField("tags", ValueType::kString, true)}};
  auto decoder =
      BatchStreamDecoder::Create(TestStreamHeader({{"tags", ValueType::kString, true}}), schema)
          .value();
  const std::string payload = TestNumbers<uint32_t>({0xffffffff, 0xffffffff});
  Columns columns(schema);
  EXPECT_TRUE(absl::IsDataLoss(
      decoder->Decode(GetPrefix(2, payload), std::make_shared<std::string>(payload), &columns)));
}

TEST(BatchStreamTest, PrefixesAreChecked) {
  const std::string start = TestStreamStart(StreamColumns());
  const std::string_view prefix(start.data(), kStreamPrefixBytes);
  EXPECT_EQ(ParseStreamPrefix(prefix).value(), start.size() - kStreamPrefixBytes);
  std::string other(prefix);
  other[8] = 2;
  EXPECT_THAT(std::string(ParseStreamPrefix(other).status().message()), HasSubstr("version 2"));
  EXPECT_TRUE(absl::IsDataLoss(ParseStreamPrefix("age,job\n39,clerk\n").status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseStreamPrefix("").status()));

  const auto frame = [](uint32_t rows, uint64_t bytes) {
    std::string text = TestFrame(rows, "");
    std::memcpy(text.data() + 8, &bytes, sizeof bytes);
    return ParseFramePrefix(text).status();
  };
  EXPECT_TRUE(frame(0, 0).ok());
  EXPECT_TRUE(frame(5, 40).ok());
  EXPECT_TRUE(absl::IsDataLoss(frame(0, 8)));
  EXPECT_TRUE(absl::IsDataLoss(frame(5, 4)));
  EXPECT_TRUE(absl::IsDataLoss(frame(5, kMaxFrameBytes + 1)));
}

TEST(BatchStreamTest, ABrokenHeaderIsDataLoss) {
  const std::string header = TestStreamHeader(StreamColumns());
  const Schema schema = {{StreamField("job", ValueType::kString)}};
  for (size_t size = 0; size < header.size(); ++size) {
    EXPECT_TRUE(
        absl::IsDataLoss(BatchStreamDecoder::Create(header.substr(0, size), schema).status()));
  }
  const std::string twice =
      TestStreamHeader({{"job", ValueType::kString}, {"job", ValueType::kString}});
  EXPECT_THAT(std::string(BatchStreamDecoder::Create(twice, schema).status().message()),
              HasSubstr("two columns 'job'"));
}

}  // namespace
}  // namespace muster::formats
