#include "muster/data/kafka/message_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::data {
namespace {

using formats::FileFormat;
using testing::ElementsAre;

const MessageColumns kColumns = {.key = "user", .timestamp = "at", .headers = {{"source", "from"}}};

std::string RecordOf(FileFormat format, std::string_view value, const KafkaMessage& parts,
                     const MessageColumns& columns = kColumns) {
  const KafkaRecords how = {.format = format, .added = columns};
  MessageRecords records(how);
  KafkaMessage message = parts;
  message.value = value;
  std::string record = "before ";
  records.Append(message, &record);
  return record.substr(7);
}

class MessageRecordsTest : public testing::Test {
 protected:
  std::vector<std::optional<std::string_view>> from_ = {"a,\"b\""};
  std::vector<std::optional<std::string_view>> nothing_ = {std::nullopt};
  KafkaMessage full_ = {.key = "k\xff", .timestamp_ms = 1999, .headers = from_};
  KafkaMessage empty_ = {.headers = nothing_};
};

TEST_F(MessageRecordsTest, MembersOfJson) {
  const std::string added = "\"user\":\"k\xef\xbf\xbd\",\"at\":1,\"from\":\"a,\\\"b\\\"\"}";
  EXPECT_EQ(RecordOf(FileFormat::kJsonLines, "{\"a\":1}\n", full_), "{\"a\":1," + added);
  EXPECT_EQ(RecordOf(FileFormat::kJsonLines, "{ }", full_), "{ " + added);
  EXPECT_EQ(RecordOf(FileFormat::kJsonLines, std::string("\0\0\0\0\7{}", 7), full_), "{" + added);
  EXPECT_EQ(RecordOf(FileFormat::kJsonLines, "{}", empty_),
            "{\"user\":null,\"at\":null,\"from\":null}");
  for (const char* const broken : {"", "}", "{", "  }", "nothing"}) {
    EXPECT_EQ(RecordOf(FileFormat::kJsonLines, broken, empty_).substr(0, 1),
              std::string(broken).substr(0, 1));
  }
}

TEST_F(MessageRecordsTest, CellsOfCsv) {
  EXPECT_EQ(RecordOf(FileFormat::kCsv, "1,2\r\n", full_), "1,2,k\xff,1,\"a,\"\"b\"\"\"");
  EXPECT_EQ(RecordOf(FileFormat::kCsv, "1,2", empty_), "1,2,,,");
}

TEST_F(MessageRecordsTest, FeaturesReplaceThoseOfTheValue) {
  formats::Schema schema;
  for (const char* const name : {"user", "a"}) schema.fields.emplace_back().name = name;
  formats::Columns row(schema);
  row.mutable_column(0).strings.emplace_back("old");
  row.mutable_column(1).strings.emplace_back("x");
  row.AddRow();
  std::string value;
  formats::ExampleEncoder(schema).Encode(row, 0, &value);
  const auto features =
      formats::DescribeExample(RecordOf(FileFormat::kTfRecord, value, full_, {.key = "user"}));
  ASSERT_TRUE(features.ok()) << features.status();
  ASSERT_EQ(features->size(), 2);
  for (const auto& feature : *features) {
    EXPECT_THAT(feature.values, ElementsAre(feature.name == "user" ? "k\\xff" : "x"));
  }
}

TEST_F(MessageRecordsTest, WithoutColumnsAValueStaysAsItIs) {
  for (const auto format : {FileFormat::kCsv, FileFormat::kJsonLines, FileFormat::kTfRecord}) {
    EXPECT_EQ(RecordOf(format, "{\"a\":1}\n", full_, {}), "{\"a\":1}\n");
  }
}

}  // namespace
}  // namespace muster::data
