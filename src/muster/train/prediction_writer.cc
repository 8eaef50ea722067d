#include "muster/train/prediction_writer.h"

#include <unistd.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

#include "muster/base/strings.h"
#include "muster/formats/columns.h"
#include "muster/formats/csv.h"
#include "muster/formats/example.h"
#include "muster/formats/tfrecord.h"
#include "nlohmann/json.hpp"

namespace muster::train {
namespace {

constexpr size_t kFlushBytes = 64 << 10;

std::string Shortest(float value) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, result.ptr);
}

float Logistic(float logit) { return 1.0f / (1.0f + std::exp(-logit)); }

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

  // Without Close() nothing stays behind.
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

  // For a writer that takes the file over and closes it itself.
  std::unique_ptr<io::WritableFile> TakeFile() { return std::move(file_); }

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

// One prediction, as all formats tell it.
struct Prediction {
  std::string_view key;
  float logit = 0;
  float logistic = 0;
  int class_id = 0;
};

template <typename Take>
absl::Status ForEachPrediction(const PredictionRows& rows, int64_t first_row, Take&& take) {
  std::string number;
  for (size_t i = 0; i < rows.logits.size(); ++i) {
    Prediction p;
    if (rows.keys.empty()) {
      number = StrCat(first_row + static_cast<int64_t>(i));
      p.key = number;
    } else {
      p.key = rows.keys[i];
    }
    p.logit = rows.logits[i];
    p.logistic = Logistic(p.logit);
    p.class_id = p.logit > 0 ? 1 : 0;
    MUSTER_RETURN_IF_ERROR(take(p));
  }
  return absl::OkStatus();
}

class TextWriter : public PredictionWriter {
 public:
  TextWriter(std::unique_ptr<Output> output, Options options)
      : output_(std::move(output)), options_(std::move(options)) {
    if (options_.format != PredictionFormat::kCsv) return;
    formats::AppendCsvCell(options_.key, ',', &text_);
    text_ += ",logits,logistic,class_ids,classes\n";
  }

  absl::Status Write(const PredictionRows& rows) override {
    MUSTER_RETURN_IF_ERROR(ForEachPrediction(rows, row_, [&](const Prediction& p) {
      if (options_.format == PredictionFormat::kCsv) {
        AppendCsv(p);
      } else {
        AppendJson(p);
      }
      return absl::OkStatus();
    }));
    row_ += static_cast<int64_t>(rows.logits.size());
    return text_.size() < kFlushBytes ? absl::OkStatus() : Flush();
  }

  absl::Status Close() override {
    MUSTER_RETURN_IF_ERROR(Flush());
    return output_->Finish();
  }

 private:
  void AppendCsv(const Prediction& p) {
    formats::AppendCsvCell(p.key, ',', &text_);
    text_ += StrCat(",", Shortest(p.logit), ",", Shortest(p.logistic), ",", p.class_id, ",");
    formats::AppendCsvCell(options_.classes[p.class_id], ',', &text_);
    text_ += '\n';
  }

  void AppendJson(const Prediction& p) {
    const auto quoted = [](std::string_view text) {
      return nlohmann::json(std::string(text))
          .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    const std::string probability = Shortest(p.logistic);
    text_ += StrCat("{", quoted(options_.key), ":",
                    options_.numeric_key ? std::string(p.key) : quoted(p.key), ",\"logits\":[",
                    Shortest(p.logit), "],\"logistic\":[", probability, "],\"probabilities\":[",
                    Shortest(1.0f - p.logistic), ",", probability, "],\"class_ids\":[", p.class_id,
                    "],\"classes\":[", quoted(options_.classes[p.class_id]), "]}\n");
  }

  absl::Status Flush() {
    const absl::Status status = output_->Append(text_);
    text_.clear();
    return status;
  }

  std::unique_ptr<Output> output_;
  const Options options_;
  std::string text_;
  int64_t row_ = 0;
};

formats::Schema ExampleSchema(const PredictionWriter::Options& options) {
  using formats::ValueType;
  const auto field = [](std::string name, ValueType type, bool list = false) {
    formats::Field f;
    f.name = std::move(name);
    f.type = type;
    f.list = list;
    return f;
  };
  return {{field(options.key, options.numeric_key ? ValueType::kInt : ValueType::kString),
           field("logits", ValueType::kFloat), field("logistic", ValueType::kFloat),
           field("probabilities", ValueType::kFloat, /*list=*/true),
           field("class_ids", ValueType::kInt), field("classes", ValueType::kString)}};
}

class ExampleWriter : public PredictionWriter {
 public:
  ExampleWriter(std::unique_ptr<Output> output, std::unique_ptr<formats::TfRecordWriter> writer,
                Options options)
      : output_(std::move(output)),
        writer_(std::move(writer)),
        options_(std::move(options)),
        schema_(ExampleSchema(options_)),
        columns_(schema_),
        encoder_(schema_) {}

  absl::Status Write(const PredictionRows& rows) override {
    columns_.Clear();
    MUSTER_RETURN_IF_ERROR(
        ForEachPrediction(rows, row_, [&](const Prediction& p) { return Append(p); }));
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
  absl::Status Append(const Prediction& p) {
    if (options_.numeric_key) {
      int64_t number = 0;
      if (!absl::SimpleAtoi(ToAbsl(p.key), &number)) {
        return absl::InternalError(StrCat("prediction key '", p.key, "' is not a number"));
      }
      columns_.mutable_column(0).ints.push_back(number);
    } else {
      columns_.mutable_column(0).strings.push_back(columns_.Store(p.key));
    }
    columns_.mutable_column(1).floats.push_back(p.logit);
    columns_.mutable_column(2).floats.push_back(p.logistic);
    formats::Column& both = columns_.mutable_column(3);
    both.floats.push_back(1.0f - p.logistic);
    both.floats.push_back(p.logistic);
    columns_.mutable_column(4).ints.push_back(p.class_id);
    columns_.mutable_column(5).strings.push_back(options_.classes[p.class_id]);
    columns_.AddRow();
    return absl::OkStatus();
  }

  std::unique_ptr<Output> output_;
  std::unique_ptr<formats::TfRecordWriter> writer_;
  const Options options_;
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
                                           "or say --format csv|jsonl|tfrecord"));
}

absl::StatusOr<std::unique_ptr<PredictionWriter>> PredictionWriter::Create(io::FileSystem& files,
                                                                           const Options& given) {
  Options options = given;
  if (options.key.empty()) {
    options.key = "row";
    options.numeric_key = true;
  }
  MUSTER_ASSIGN_OR_RETURN(auto output, Output::Open(files, options.path));
  if (options.format != PredictionFormat::kTfRecord) {
    return std::make_unique<TextWriter>(std::move(output), std::move(options));
  }
  if (options.path == "-") {
    return absl::InvalidArgumentError("TFRecord predictions need a file: --out FILE.tfrecord");
  }
  MUSTER_ASSIGN_OR_RETURN(auto writer, formats::TfRecordWriter::Create(
                                           output->TakeFile(), formats::Compression::kNone));
  return std::make_unique<ExampleWriter>(std::move(output), std::move(writer), std::move(options));
}

}  // namespace muster::train
