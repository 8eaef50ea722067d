#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/formats/batch_stream.h"
#include "muster/formats/batch_stream_test_util.h"

namespace muster::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Schema EncodedSchema() {
  Schema schema;
  for (const auto& [name, type, list] :
       std::vector<TestStreamColumn>{{"age", ValueType::kInt},
                                     {"gain", ValueType::kFloat, true},
                                     {"job", ValueType::kString},
                                     {"tags", ValueType::kString, true}}) {
    Field field;
    field.name = name;
    field.type = type;
    field.list = list;
    schema.fields.push_back(field);
  }
  return schema;
}

TEST(BatchStreamEncoderTest, TheDecoderReadsTheSameRows) {
  const Schema schema = EncodedSchema();
  Columns columns(schema);
  columns.mutable_column(0).ints = {-1, int64_t{1} << 40};
  columns.mutable_column(1).floats = {0.5f, 2, 3};
  columns.mutable_column(1).offsets = {0, 3, 3};
  columns.mutable_column(2).strings = {"clerk", ""};
  columns.mutable_column(3).strings = {"a"};
  columns.mutable_column(3).offsets = {0, 0, 1};
  columns.AddRows(2);
  const BatchStreamEncoder encoder(schema);
  const std::string start = encoder.Start();
  const auto header_bytes = ParseStreamPrefix(start.substr(0, kStreamPrefixBytes));
  ASSERT_TRUE(header_bytes.ok());
  const std::string header = start.substr(kStreamPrefixBytes);
  ASSERT_EQ(*header_bytes, header.size());
  const auto found = ParseStreamSchema(header);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, schema);

  std::string stream = "before";
  ASSERT_TRUE(encoder.Encode(columns, &stream).ok());
  ASSERT_EQ(stream.substr(0, 6), "before");
  const auto frame = ParseFramePrefix(stream.substr(6, kFramePrefixBytes));
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(frame->rows, 2u);
  const auto payload = std::make_shared<const std::string>(stream.substr(6 + kFramePrefixBytes));
  EXPECT_EQ(payload->size(), frame->bytes);
  const auto decoder = BatchStreamDecoder::Create(header, schema);
  ASSERT_TRUE(decoder.ok());
  Columns read(schema);
  ASSERT_TRUE((*decoder)->Decode(*frame, payload, &read).ok());
  EXPECT_EQ(read.rows(), 2);
  EXPECT_THAT(read.column(0).ints, ElementsAre(-1, int64_t{1} << 40));
  EXPECT_THAT(read.column(1).floats, ElementsAre(0.5f, 2, 3));
  EXPECT_THAT(read.column(1).offsets, ElementsAre(0, 3, 3));
  EXPECT_THAT(read.column(2).strings, ElementsAre("clerk", ""));
  EXPECT_THAT(read.column(3).strings, ElementsAre("a"));
  EXPECT_THAT(read.column(3).offsets, ElementsAre(0, 0, 1));
}

TEST(BatchStreamEncoderTest, TheEndIsAFrameWithoutRows) {
  const auto end = ParseFramePrefix(BatchStreamEncoder::End());
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->rows, 0u);
  EXPECT_FALSE(ParseStreamSchema("short").ok());
}

}  // namespace
}  // namespace muster::formats
