// MessageRecords: records of messages, with the columns that a name asks for (MessageColumns) added
// to the message's value in the value's own format: members of a JSON object, cells of a row of CSV
// or features of a tf.Example. Decoders then need not know of messages.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/data/kafka/kafka_cluster.h"
#include "muster/data/kafka/kafka_name.h"
#include "muster/formats/columns.h"
#include "muster/formats/csv.h"
#include "muster/formats/data_format.h"
#include "muster/formats/decoder.h"
#include "muster/formats/example.h"

namespace muster::data {

// What messages hold.
struct KafkaRecords {
  formats::FileFormat format = formats::FileFormat::kTfRecord;  // of a value, not of a file
  formats::CsvOptions csv = {};
  std::vector<std::string> columns = {};  // of CSV, with those of `added` at the end
  MessageColumns added = {};
  std::string where = {};  // the first record, for messages
  bool is_given = false;   // whether --data-format says the format, and not the first record
};

// What Confluent's serializers put before a value: a zero byte and the number of a schema.
inline constexpr size_t kFramingBytes = 5;
// Skips what Confluent's serializers put before a JSON object: a zero byte and the number of a
// schema. Other values are returned as they are.
std::string_view StripFraming(std::string_view value);

// The format that a record has by its bytes; nullopt for bytes that are none of the three.
std::optional<formats::FileFormat> RecognizeRecord(std::string_view value);

// A decoder of the topic's records, by one of their format. The error of a record that has another
// format says so.
std::unique_ptr<formats::RowDecoder> NewTopicDecoder(std::unique_ptr<formats::RowDecoder> decoder,
                                                     const KafkaRecords& records);

// One owner thread.
class MessageRecords {
 public:
  explicit MessageRecords(const KafkaRecords& records);
  // Appends the record of a message, which is no deletion. A column replaces a member or feature of
  // the value that has its name. A message without key, time or header has no value in the column.
  void Append(const KafkaMessage& message, std::string* bytes);

 private:
  using Value = std::optional<std::string_view>;
  void AppendJson(std::string_view value, std::string* bytes) const;
  void AppendCsv(std::string_view value, std::string* bytes) const;
  void AppendExample(std::string_view value, std::string* bytes);
  // Fills texts_ and time_ with what the message has.
  void Read(const KafkaMessage& message);

  const KafkaRecords& records_;
  const std::vector<std::string> names_;  // of the columns
  const int time_place_;                  // among names_; -1: none
  std::vector<Value> texts_;              // by column; that of the time is not used
  std::optional<int64_t> time_;           // in seconds
  formats::Schema schema_;                // of the columns, as features
  formats::Columns features_;
  formats::ExampleEncoder encoder_;
};

}  // namespace muster::data
