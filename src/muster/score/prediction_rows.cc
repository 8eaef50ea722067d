#include "muster/score/prediction_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/base/strings.h"
#include "muster/formats/csv.h"
#include "nlohmann/json.hpp"

namespace muster::score {
namespace {

std::string Quoted(std::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Whether a cell of CSV needs quotes.
bool NeedsQuotes(std::string_view cell) {
  struct Special {
    bool is[256] = {};
    constexpr Special() {
      for (const char c : {',', '"', '\n', '\r'}) is[static_cast<uint8_t>(c)] = true;
    }
  };
  static constexpr Special kSpecial;
  return std::ranges::any_of(cell, [](char c) { return kSpecial.is[static_cast<uint8_t>(c)]; });
}

class TextValues : public PredictionValues {
 public:
  TextValues(const PredictionWriter::Options& options, const engine::Predictions& shape)
      : rows_(options, shape) {}

  absl::StatusOr<std::span<const std::string_view>> Encode(
      std::span<const std::string> keys, const engine::Predictions& predictions) override {
    text_.Clear();
    std::vector<size_t> ends;
    for (int row = 0; row < predictions.rows; ++row) {
      rows_.AppendRow(keys, predictions, row, &text_);
      ends.push_back(text_.size());
    }
    values_.clear();
    size_t begin = 0;
    for (const size_t end : ends) {
      values_.push_back(text_.text().substr(begin, end - begin));
      begin = end;
    }
    return values_;
  }

 private:
  PredictionRows rows_;
  TextBuffer text_;
  std::vector<std::string_view> values_;
};

class ExampleValues : public PredictionValues {
 public:
  explicit ExampleValues(PredictionColumns columns)
      : columns_(std::move(columns)), encoder_(columns_.schema()) {}

  absl::StatusOr<std::span<const std::string_view>> Encode(
      std::span<const std::string> keys, const engine::Predictions& predictions) override {
    MUSTER_ASSIGN_OR_RETURN(const formats::Columns* const columns,
                            columns_.Fill(keys, predictions));
    records_.resize(static_cast<size_t>(columns->rows()));
    values_.clear();
    for (int row = 0; row < columns->rows(); ++row) {
      std::string& record = records_[static_cast<size_t>(row)];
      encoder_.Encode(*columns, row, &record);
      values_.push_back(record);
    }
    return values_;
  }

 private:
  PredictionColumns columns_;
  formats::ExampleEncoder encoder_;
  std::vector<std::string> records_;
  std::vector<std::string_view> values_;
};

}  // namespace

absl::Status CheckHolds(PredictionFormat format, const engine::Predictions& shape) {
  for (const engine::PredictionTensor& tensor : shape.tensors) {
    if (tensor.width > 0 || format != PredictionFormat::kCsv) continue;
    return absl::InvalidArgumentError(StrCat(
        "prediction '", tensor.name, "' has a varying number of values, which columns of CSV ",
        "cannot hold: give --format jsonl or tfrecord"));
  }
  return absl::OkStatus();
}

PredictionRows::PredictionRows(PredictionWriter::Options options, const engine::Predictions& shape)
    : options_(std::move(options)),
      csv_(options_.format == PredictionFormat::kCsv),
      places_(FindWrittenTensors(shape, csv_)) {}

void PredictionRows::AppendHeader(const engine::Predictions& shape, TextBuffer* text) const {
  if (!csv_) return;
  AppendCell(options_.key, text);
  for (const size_t place : places_) {
    const engine::PredictionTensor& tensor = shape.tensors[place];
    if (tensor.width == 1) {
      text->Append(StrCat(",", tensor.name));
      continue;
    }
    for (int i = 0; i < tensor.width; ++i) text->Append(StrCat(",", tensor.name, "_", i));
  }
  text->Append('\n');
}

void PredictionRows::AppendCell(std::string_view cell, TextBuffer* text) {
  if (!NeedsQuotes(cell)) return text->Append(cell);
  std::string quoted;
  formats::AppendCsvCell(cell, ',', &quoted);
  text->Append(quoted);
}

void PredictionRows::AppendValue(const engine::PredictionTensor& tensor, size_t i, bool csv,
                                 TextBuffer* text) {
  switch (tensor.type) {
    case formats::ValueType::kInt:
      return text->AppendNumber(tensor.ints[i]);
    case formats::ValueType::kFloat:
      if (!csv && !std::isfinite(tensor.floats[i])) return text->Append("null");  // as JSON has it
      return text->AppendNumber(tensor.floats[i]);
    case formats::ValueType::kString:
      return csv ? AppendCell(tensor.strings[i], text) : text->Append(Quoted(tensor.strings[i]));
  }
}

void PredictionRows::AppendRow(std::span<const std::string> keys,
                               const engine::Predictions& predictions, int row, TextBuffer* text) {
  const std::string* const key = keys.empty() ? nullptr : &keys[static_cast<size_t>(row)];
  if (!csv_) text->Append(StrCat("{", Quoted(options_.key), ":"));
  if (key == nullptr) {
    text->AppendNumber(row_++);
  } else if (csv_) {
    AppendCell(*key, text);
  } else {
    text->Append(options_.numeric_key ? *key : Quoted(*key));
  }
  for (const size_t place : places_) {
    const engine::PredictionTensor& tensor = predictions.tensors[place];
    if (!csv_) text->Append(StrCat(",\"", tensor.name, "\":["));
    const size_t begin = tensor.begin(row);
    for (size_t i = begin, end = begin + tensor.width; i < end; ++i) {
      if (csv_ || i > begin) text->Append(',');
      AppendValue(tensor, i, csv_, text);
    }
    if (!csv_) text->Append(']');
  }
  if (!csv_) text->Append('}');
}

absl::StatusOr<std::unique_ptr<PredictionValues>> PredictionValues::Create(
    const PredictionWriter::Options& options, const engine::Predictor& predictor) {
  engine::Predictions shape;
  predictor.Predict({}, &shape);
  MUSTER_RETURN_IF_ERROR(CheckHolds(options.format, shape));
  switch (options.format) {
    case PredictionFormat::kCsv:
    case PredictionFormat::kJsonLines:
      return std::make_unique<TextValues>(options, shape);
    case PredictionFormat::kTfRecord:
      return std::make_unique<ExampleValues>(PredictionColumns(options, shape));
    case PredictionFormat::kBatches:
      break;
  }
  return absl::InvalidArgumentError(
      "a topic has no stream of batches: give --format jsonl, csv or tfrecord");
}

}  // namespace muster::score
