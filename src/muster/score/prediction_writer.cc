#include "muster/score/prediction_writer.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

#include "muster/base/strings.h"
#include "muster/formats/columns.h"
#include "muster/formats/csv.h"
#include "muster/formats/example.h"
#include "muster/formats/tfrecord.h"
#include "muster/score/text_buffer.h"
#include "nlohmann/json.hpp"

namespace muster::score {
namespace {

constexpr size_t kFlushBytes = 64 << 10;

// A file under a temporary name, or standard output.
class Output {
 public:
  static absl::StatusOr<std::unique_ptr<Output>> Open(io::FileSystem& files,
                                                      const std::string& path) {
    auto output = std::make_unique<Output>(files, path);
    if (path == "-") return output;
    MUSTER_ASSIGN_OR_RETURN(output->file_, files.OpenForWrite(output->temporary_));
    return output;
  }

  Output(io::FileSystem& files, const std::string& path)
      : files_(files), path_(path), temporary_(io::TemporaryPath(path)) {}

  // Removes the file unless Finish() was called.
  ~Output() {
    if (path_ == "-" || closed_) return;
    if (file_) file_->Close().IgnoreError();
    files_.Remove(temporary_).IgnoreError();
  }

  absl::Status Append(std::string_view text) {
    if (path_ != "-") return file_->Append(text);
    while (!text.empty()) {
      const ssize_t n = write(STDOUT_FILENO, text.data(), text.size());
      if (n < 0) return ErrnoStatus(errno, "writing predictions to standard output");
      text.remove_prefix(static_cast<size_t>(n));
    }
    return absl::OkStatus();
  }

  // Hands the file over to a writer that closes it itself.
  std::unique_ptr<io::WritableFile> ReleaseFile() { return std::move(file_); }

  absl::Status Finish() {
    if (path_ == "-") return absl::OkStatus();
    if (file_) {
      MUSTER_RETURN_IF_ERROR(file_->Sync());
      MUSTER_RETURN_IF_ERROR(file_->Close());
      file_.reset();
    }
    MUSTER_RETURN_IF_ERROR(files_.Rename(temporary_, path_));
    closed_ = true;
    return files_.SyncFolder(io::Dirname(path_));
  }

 private:
  io::FileSystem& files_;
  const std::string path_;
  const std::string temporary_;
  std::unique_ptr<io::WritableFile> file_;
  bool closed_ = false;
};

// Returns the indices in `shape` of the tensors that are written.
std::vector<size_t> WrittenTensors(const engine::Predictions& shape, bool csv) {
  const bool says_logistic = shape.Find("logistic") != nullptr;
  std::vector<size_t> places;
  for (size_t i = 0; i < shape.tensors.size(); ++i) {
    const engine::PredictionTensor& tensor = shape.tensors[i];
    if (tensor.same_in_all_rows) continue;
    if (csv && says_logistic && tensor.name == "probabilities") continue;
    places.push_back(i);
  }
  return places;
}

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

class TextWriter : public PredictionWriter {
 public:
  TextWriter(std::unique_ptr<Output> output, Options options, const engine::Predictions& shape)
      : output_(std::move(output)),
        options_(std::move(options)),
        places_(WrittenTensors(shape, options_.format == PredictionFormat::kCsv)) {
    if (options_.format == PredictionFormat::kCsv) AppendHeader(shape);
  }

  absl::Status Write(std::span<const std::string> keys,
                     const engine::Predictions& predictions) override {
    for (int row = 0; row < predictions.rows; ++row, ++row_) {
      const std::string* const key = keys.empty() ? nullptr : &keys[static_cast<size_t>(row)];
      if (options_.format == PredictionFormat::kCsv) {
        AppendCsv(predictions, row, key);
      } else {
        AppendJson(predictions, row, key);
      }
    }
    return text_.size() < kFlushBytes ? absl::OkStatus() : TextWriter::Flush();
  }

  absl::Status Flush() override {
    const absl::Status status = output_->Append(text_.text());
    text_.Clear();
    return status;
  }

  absl::Status Close() override {
    MUSTER_RETURN_IF_ERROR(TextWriter::Flush());
    return output_->Finish();
  }

 private:
  void AppendHeader(const engine::Predictions& shape) {
    AppendCell(options_.key);
    for (const size_t place : places_) {
      const engine::PredictionTensor& tensor = shape.tensors[place];
      if (tensor.width == 1) {
        text_.Append(StrCat(",", tensor.name));
        continue;
      }
      for (int i = 0; i < tensor.width; ++i) text_.Append(StrCat(",", tensor.name, "_", i));
    }
    text_.Append('\n');
  }

  void AppendCell(std::string_view cell) {
    if (!NeedsQuotes(cell)) return text_.Append(cell);
    std::string quoted;
    formats::AppendCsvCell(cell, ',', &quoted);
    text_.Append(quoted);
  }

  // `key` is null if rows are numbered.
  void AppendCsv(const engine::Predictions& predictions, int row, const std::string* key) {
    if (key == nullptr) {
      text_.AppendNumber(row_);
    } else {
      AppendCell(*key);
    }
    for (const size_t place : places_) {
      const engine::PredictionTensor& tensor = predictions.tensors[place];
      for (size_t i = tensor.begin(row), end = i + tensor.width; i < end; ++i) {
        text_.Append(',');
        switch (tensor.type) {
          case formats::ValueType::kInt:
            text_.AppendNumber(tensor.ints[i]);
            break;
          case formats::ValueType::kFloat:
            text_.AppendNumber(tensor.floats[i]);
            break;
          case formats::ValueType::kString:
            AppendCell(tensor.strings[i]);
            break;
        }
      }
    }
    text_.Append('\n');
  }

  void AppendJson(const engine::Predictions& predictions, int row, const std::string* key) {
    text_.Append(StrCat("{", Quoted(options_.key), ":"));
    if (key == nullptr) {
      text_.AppendNumber(row_);
    } else {
      text_.Append(options_.numeric_key ? *key : Quoted(*key));
    }
    for (const size_t place : places_) {
      const engine::PredictionTensor& tensor = predictions.tensors[place];
      text_.Append(StrCat(",\"", tensor.name, "\":["));
      for (size_t i = tensor.begin(row), end = i + tensor.width; i < end; ++i) {
        if (i > tensor.begin(row)) text_.Append(',');
        switch (tensor.type) {
          case formats::ValueType::kInt:
            text_.AppendNumber(tensor.ints[i]);
            break;
          case formats::ValueType::kFloat:
            text_.AppendNumber(tensor.floats[i]);
            break;
          case formats::ValueType::kString:
            text_.Append(Quoted(tensor.strings[i]));
            break;
        }
      }
      text_.Append(']');
    }
    text_.Append("}\n");
  }

  std::unique_ptr<Output> output_;
  const Options options_;
  const std::vector<size_t> places_;
  TextBuffer text_;
  int64_t row_ = 0;
};

formats::Schema ExampleSchema(const PredictionWriter::Options& options,
                              const engine::Predictions& shape, std::span<const size_t> places) {
  using formats::ValueType;
  const auto field = [](std::string name, ValueType type, bool list) {
    formats::Field f;
    f.name = std::move(name);
    f.type = type;
    f.list = list;
    return f;
  };
  formats::Schema schema;
  schema.fields.push_back(
      field(options.key, options.numeric_key ? ValueType::kInt : ValueType::kString, false));
  for (const size_t place : places) {
    const engine::PredictionTensor& tensor = shape.tensors[place];
    schema.fields.push_back(field(tensor.name, tensor.type, tensor.width > 1));
  }
  return schema;
}

class ExampleWriter : public PredictionWriter {
 public:
  ExampleWriter(std::unique_ptr<Output> output, std::unique_ptr<formats::TfRecordWriter> writer,
                Options options, const engine::Predictions& shape)
      : output_(std::move(output)),
        writer_(std::move(writer)),
        options_(std::move(options)),
        places_(WrittenTensors(shape, /*csv=*/false)),
        schema_(ExampleSchema(options_, shape, places_)),
        columns_(schema_),
        encoder_(schema_) {}

  absl::Status Write(std::span<const std::string> keys,
                     const engine::Predictions& predictions) override {
    columns_.Clear();
    for (int row = 0; row < predictions.rows; ++row) {
      MUSTER_RETURN_IF_ERROR(Append(
          predictions, row, keys.empty() ? StrCat(row_ + row) : keys[static_cast<size_t>(row)]));
    }
    std::string record;
    for (int row = 0; row < columns_.rows(); ++row) {
      encoder_.Encode(columns_, row, &record);
      MUSTER_RETURN_IF_ERROR(writer_->Write(record));
    }
    row_ += columns_.rows();
    return absl::OkStatus();
  }

  absl::Status Close() override {
    MUSTER_RETURN_IF_ERROR(writer_->Close());
    return output_->Finish();
  }

 private:
  absl::Status Append(const engine::Predictions& predictions, int row, const std::string& key) {
    if (options_.numeric_key) {
      int64_t number = 0;
      if (!absl::SimpleAtoi(key, &number)) {
        return absl::InternalError(StrCat("prediction key '", key, "' is not a number"));
      }
      columns_.mutable_column(0).ints.push_back(number);
    } else {
      columns_.mutable_column(0).strings.push_back(columns_.Store(key));
    }
    for (size_t field = 0; field < places_.size(); ++field) {
      const engine::PredictionTensor& tensor = predictions.tensors[places_[field]];
      formats::Column& column = columns_.mutable_column(static_cast<int>(field) + 1);
      const auto append = [&](const auto& values, auto* out) {
        const auto begin = values.begin() + static_cast<ptrdiff_t>(tensor.begin(row));
        out->insert(out->end(), begin, begin + tensor.width);
      };
      switch (tensor.type) {
        case formats::ValueType::kInt:
          append(tensor.ints, &column.ints);
          break;
        case formats::ValueType::kFloat:
          append(tensor.floats, &column.floats);
          break;
        case formats::ValueType::kString:  // the strings live until they are encoded
          append(tensor.strings, &column.strings);
          break;
      }
    }
    columns_.AddRow();
    return absl::OkStatus();
  }

  std::unique_ptr<Output> output_;
  std::unique_ptr<formats::TfRecordWriter> writer_;
  const Options options_;
  const std::vector<size_t> places_;
  const formats::Schema schema_;
  formats::Columns columns_;
  formats::ExampleEncoder encoder_;
  int64_t row_ = 0;
};

}  // namespace

absl::StatusOr<PredictionFormat> FormatFor(const std::string& path) {
  if (absl::EndsWith(path, ".csv")) return PredictionFormat::kCsv;
  if (absl::EndsWith(path, ".jsonl") || absl::EndsWith(path, ".json")) {
    return PredictionFormat::kJsonLines;
  }
  if (absl::EndsWith(path, ".tfrecord") || absl::EndsWith(path, ".tfrecords")) {
    return PredictionFormat::kTfRecord;
  }
  return absl::InvalidArgumentError(StrCat("output '", path,
                                           "': the name must end in .csv, .jsonl or .tfrecord; ",
                                           "or give --format csv|jsonl|tfrecord"));
}

absl::StatusOr<std::unique_ptr<PredictionWriter>> PredictionWriter::Create(
    io::FileSystem& files, const Options& given, const engine::Predictor& predictor) {
  Options options = given;
  if (options.key.empty()) {
    options.key = "row";
    options.numeric_key = true;
  }
  engine::Predictions shape;
  predictor.Predict({}, &shape);
  MUSTER_ASSIGN_OR_RETURN(auto output, Output::Open(files, options.path));
  for (const engine::PredictionTensor& tensor : shape.tensors) {
    if (tensor.width > 0 || options.format != PredictionFormat::kCsv) continue;
    return absl::InvalidArgumentError(StrCat(
        "prediction '", tensor.name, "' has a varying number of values, which columns of CSV ",
        "cannot hold: give --format jsonl or tfrecord"));
  }
  if (options.format != PredictionFormat::kTfRecord) {
    return std::make_unique<TextWriter>(std::move(output), std::move(options), shape);
  }
  if (options.path == "-") {
    return absl::InvalidArgumentError("TFRecord predictions need a file: --out FILE.tfrecord");
  }
  MUSTER_ASSIGN_OR_RETURN(auto writer, formats::TfRecordWriter::Create(
                                           output->ReleaseFile(), formats::Compression::kNone));
  return std::make_unique<ExampleWriter>(std::move(output), std::move(writer), std::move(options),
                                         shape);
}

}  // namespace muster::score
