#include "muster/data/kafka/message_records.h"

#include <algorithm>
#include <utility>

#include "muster/base/strings.h"
#include "nlohmann/json.hpp"

namespace muster::data {
namespace {

using formats::FileFormat;

constexpr int64_t kMillis = 1000;

int FindTime(const MessageColumns& columns) {
  if (columns.timestamp.empty()) return -1;
  return columns.key.empty() ? 0 : 1;
}

formats::Schema MakeSchema(const std::vector<std::string>& names, int time_place) {
  formats::Schema schema;
  for (const std::string& name : names) {
    const bool is_time = std::ssize(schema.fields) == time_place;
    formats::Field& field = schema.fields.emplace_back();
    field.name = name;
    field.type = is_time ? formats::ValueType::kInt : formats::ValueType::kString;
    field.list = true;  // it may have no value
  }
  return schema;
}

std::string Quoted(std::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

const char* NameRecord(FileFormat format) {
  switch (format) {
    case FileFormat::kJsonLines:
      return "a JSON object";
    case FileFormat::kCsv:
      return "a row of CSV";
    case FileFormat::kTfRecord:
      return "a tf.Example";
  }
  return "";
}

class TopicDecoder : public formats::RowDecoder {
 public:
  TopicDecoder(std::unique_ptr<formats::RowDecoder> decoder, const KafkaRecords& records)
      : decoder_(std::move(decoder)),
        format_(records.format),
        why_(records.is_given ? "as --data-format says"
                              : StrCat("as its first record is (", records.where, ")")) {}

  absl::Status Decode(std::string_view record, formats::Columns* columns) override {
    return Explain(decoder_->Decode(record, columns), record);
  }
  void UseLayout(int layout) override { decoder_->UseLayout(layout); }
  bool DecodesRuns() const override { return decoder_->DecodesRuns(); }
  absl::Status DecodeRun(std::span<const std::string_view> records, formats::Columns* columns,
                         size_t* decoded) override {
    const absl::Status status = decoder_->DecodeRun(records, columns, decoded);
    return status.ok() ? status : Explain(status, records[*decoded]);
  }

 private:
  absl::Status Explain(const absl::Status& status, std::string_view record) const {
    if (status.ok()) return status;
    const std::optional<FileFormat> found = RecognizeRecord(record);
    const bool may_be_csv = record.find_first_of(",;|\t\1") != std::string_view::npos;
    if (!found || found == format_ || (found == FileFormat::kCsv && !may_be_csv)) return status;
    return {status.code(),
            StrCat("looks like ", NameRecord(*found), ", but each record of the topic is read as ",
                   NameRecord(format_), ", ", why_, ": a topic has records of one format")};
  }

  const std::unique_ptr<formats::RowDecoder> decoder_;
  const FileFormat format_;
  const std::string why_;
};

}  // namespace

std::optional<FileFormat> RecognizeRecord(std::string_view value) {
  if (value.starts_with('{')) return FileFormat::kJsonLines;
  if (formats::DescribeExample(value).ok()) return FileFormat::kTfRecord;
  // Hive's delimiter is the byte 1.
  const auto is_control = [](char byte) {
    return static_cast<unsigned char>(byte) < ' ' && byte != '\t' && byte != '\r' && byte != '\n' &&
           byte != '\1';
  };
  if (std::ranges::any_of(value, is_control)) return std::nullopt;
  return FileFormat::kCsv;
}

std::unique_ptr<formats::RowDecoder> NewTopicDecoder(std::unique_ptr<formats::RowDecoder> decoder,
                                                     const KafkaRecords& records) {
  return std::make_unique<TopicDecoder>(std::move(decoder), records);
}

std::string_view StripFraming(std::string_view value) {
  const bool framed =
      value.size() > kFramingBytes && value[0] == '\0' && value[kFramingBytes] == '{';
  return framed ? value.substr(kFramingBytes) : value;
}

MessageRecords::MessageRecords(const KafkaRecords& records)
    : records_(records),
      names_(records.added.Names()),
      time_place_(FindTime(records.added)),
      texts_(names_.size()),
      schema_(MakeSchema(names_, time_place_)),
      features_(schema_),
      encoder_(schema_) {}

void MessageRecords::Append(const KafkaMessage& message, std::string* bytes) {
  std::string_view value = message.value;
  if (records_.format == FileFormat::kJsonLines) value = StripFraming(value);
  if (names_.empty()) {
    bytes->append(value);
    return;
  }
  Read(message);
  switch (records_.format) {
    case FileFormat::kJsonLines:
      return AppendJson(value, bytes);
    case FileFormat::kCsv:
      return AppendCsv(value, bytes);
    case FileFormat::kTfRecord:
      return AppendExample(value, bytes);
  }
}

void MessageRecords::Read(const KafkaMessage& message) {
  size_t place = 0;
  if (!records_.added.key.empty()) texts_[place++] = message.key;
  if (time_place_ >= 0) {
    time_.reset();
    if (message.timestamp_ms >= 0) time_ = message.timestamp_ms / kMillis;
    ++place;
  }
  for (const Value& header : message.headers) {
    if (place < texts_.size()) texts_[place++] = header;  // the columns' headers come first
  }
}

void MessageRecords::AppendJson(std::string_view value, std::string* bytes) const {
  const size_t end = value.rfind('}');
  const size_t before = value.find_last_not_of(" \t\r\n", end - 1);
  if (end == std::string_view::npos || end == 0 || before == std::string_view::npos) {
    bytes->append(value);  // the decoder says what is wrong with it
    return;
  }
  bytes->append(value.substr(0, end));
  // Of members with the same name, the last one counts.
  std::string_view comma = value[before] == '{' ? "" : ",";
  for (size_t i = 0; i < names_.size(); ++i) {
    bytes->append(StrCat(comma, Quoted(names_[i]), ":"));
    if (std::cmp_equal(i, time_place_)) {
      bytes->append(time_ ? StrCat(*time_) : "null");
    } else {
      bytes->append(texts_[i] ? Quoted(*texts_[i]) : "null");
    }
    comma = ",";
  }
  bytes->append("}");
}

void MessageRecords::AppendCsv(std::string_view value, std::string* bytes) const {
  bytes->append(formats::StripLineEnd(value));
  for (size_t i = 0; i < names_.size(); ++i) {
    bytes->push_back(records_.csv.delimiter);
    if (std::cmp_equal(i, time_place_)) {
      if (time_) bytes->append(StrCat(*time_));
    } else if (texts_[i]) {
      formats::AppendCsvCell(*texts_[i], records_.csv.delimiter, bytes);
    }
  }
}

// Two messages of protobuf, one after the other, are one message with the fields of both.
void MessageRecords::AppendExample(std::string_view value, std::string* bytes) {
  features_.Clear();
  for (size_t i = 0; i < names_.size(); ++i) {
    formats::Column& column = features_.mutable_column(static_cast<int>(i));
    if (std::cmp_equal(i, time_place_)) {
      if (time_) column.ints.push_back(*time_);
    } else if (texts_[i]) {
      column.strings.push_back(*texts_[i]);
    }
  }
  features_.AddRow();
  std::string added;
  encoder_.Encode(features_, 0, &added);
  bytes->append(value);
  bytes->append(added);
}

}  // namespace muster::data
