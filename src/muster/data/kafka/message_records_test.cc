#include "muster/data/kafka/message_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/base/strings.h"
#include "muster/formats/json_lines.h"

namespace muster::data {
namespace {

using formats::FileFormat;
using testing::ElementsAre;
using testing::HasSubstr;

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

TEST(TopicDecoderTest, ARecordOfAnotherFormatIsNamed) {
  formats::Schema schema;
  schema.fields.emplace_back().name = "a";
  formats::Columns rows(schema);
  const auto why = [&](const KafkaRecords& records, std::string_view record) {
    auto decoder = records.format == FileFormat::kCsv
                       ? formats::NewCsvDecoder(schema, {{"a"}}, records.csv)
                       : formats::NewJsonDecoder(schema);
    EXPECT_TRUE(decoder.ok()) << decoder.status();
    const auto whole = NewTopicDecoder(*std::move(decoder), records);
    const std::string_view run[] = {record};
    size_t decoded = 0;
    const absl::Status of_run = whole->DecodeRun(run, &rows, &decoded);
    EXPECT_EQ(whole->Decode(record, &rows), of_run);
    return std::string(ToStd(of_run.message()));
  };
  KafkaRecords records = {.format = FileFormat::kJsonLines, .where = "t/0: offset 3"};
  EXPECT_EQ(why(records, "{\"a\": \"1\"}"), "");
  EXPECT_EQ(
      why(records, "1,2"),
      "looks like a row of CSV, but each record of the topic is read as a JSON object, as its "
      "first record is (t/0: offset 3): a topic has records of one format");
  EXPECT_THAT(why(records, std::string("\x0a\x00", 2)), HasSubstr("looks like a tf.Example, but"));
  EXPECT_EQ(why(records, "broken"), "not a JSON object");
  EXPECT_EQ(why(records, "{broken").find("looks like"), std::string::npos);
  records = {.format = FileFormat::kCsv, .is_given = true};
  EXPECT_EQ(why(records, "1"), "");
  EXPECT_THAT(
      why(records, "{\"a\": 1, \"b\": 2}"),
      HasSubstr("looks like a JSON object, but each record of the topic is read as a row of "
                "CSV, as --data-format says"));
}

}  // namespace
}  // namespace muster::data
