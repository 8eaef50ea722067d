#include "muster/score/prediction_writer.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"

#include "muster/base/strings.h"
#include "muster/formats/batch_stream.h"
#include "muster/formats/example.h"
#include "muster/formats/tfrecord.h"
#include "muster/score/prediction_columns.h"
#include "muster/score/prediction_rows.h"
#include "muster/score/text_buffer.h"

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
      if (n < 0 && errno == EPIPE) return absl::CancelledError("nobody reads standard output");
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

class TextWriter : public PredictionWriter {
 public:
  TextWriter(std::unique_ptr<Output> output, const Options& options,
             const engine::Predictions& shape)
      : output_(std::move(output)), rows_(options, shape) {
    rows_.AppendHeader(shape, &text_);
  }

  absl::Status Write(std::span<const std::string> keys,
                     const engine::Predictions& predictions) override {
    for (int row = 0; row < predictions.rows; ++row) {
      rows_.AppendRow(keys, predictions, row, &text_);
      text_.Append('\n');
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
  std::unique_ptr<Output> output_;
  PredictionRows rows_;
  TextBuffer text_;
};

class ExampleWriter : public PredictionWriter {
 public:
  ExampleWriter(std::unique_ptr<Output> output, std::unique_ptr<formats::TfRecordWriter> writer,
                PredictionColumns columns)
      : output_(std::move(output)),
        writer_(std::move(writer)),
        columns_(std::move(columns)),
        encoder_(columns_.schema()) {}

  absl::Status Write(std::span<const std::string> keys,
                     const engine::Predictions& predictions) override {
    MUSTER_ASSIGN_OR_RETURN(const formats::Columns* const columns,
                            columns_.Fill(keys, predictions));
    std::string record;
    for (int row = 0; row < columns->rows(); ++row) {
      encoder_.Encode(*columns, row, &record);
      MUSTER_RETURN_IF_ERROR(writer_->Write(record));
    }
    return absl::OkStatus();
  }

  absl::Status Close() override {
    MUSTER_RETURN_IF_ERROR(writer_->Close());
    return output_->Finish();
  }

 private:
  std::unique_ptr<Output> output_;
  std::unique_ptr<formats::TfRecordWriter> writer_;
  PredictionColumns columns_;
  formats::ExampleEncoder encoder_;
};

// Each batch is on its way when Write returns: the program that reads them may wait for it.
class StreamWriter : public PredictionWriter {
 public:
  StreamWriter(std::unique_ptr<Output> output, PredictionColumns columns)
      : output_(std::move(output)), columns_(std::move(columns)), encoder_(columns_.schema()) {}

  absl::Status Start() { return output_->Append(encoder_.Start()); }

  absl::Status Write(std::span<const std::string> keys,
                     const engine::Predictions& predictions) override {
    if (predictions.rows == 0) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const formats::Columns* const columns,
                            columns_.Fill(keys, predictions));
    frame_.clear();
    MUSTER_RETURN_IF_ERROR(encoder_.Encode(*columns, &frame_));
    return output_->Append(frame_);
  }

  absl::Status Close() override {
    MUSTER_RETURN_IF_ERROR(output_->Append(formats::BatchStreamEncoder::End()));
    return output_->Finish();
  }

 private:
  std::unique_ptr<Output> output_;
  PredictionColumns columns_;
  formats::BatchStreamEncoder encoder_;
  std::string frame_;
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
  if (absl::EndsWith(path, ".batches")) return PredictionFormat::kBatches;
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
  MUSTER_RETURN_IF_ERROR(CheckHolds(options.format, shape));
  if (options.format == PredictionFormat::kBatches) {
    auto writer =
        std::make_unique<StreamWriter>(std::move(output), PredictionColumns(options, shape));
    MUSTER_RETURN_IF_ERROR(writer->Start());
    return writer;
  }
  if (options.format != PredictionFormat::kTfRecord) {
    return std::make_unique<TextWriter>(std::move(output), options, shape);
  }
  if (options.path == "-") {
    return absl::InvalidArgumentError("TFRecord predictions need a file: --out FILE.tfrecord");
  }
  MUSTER_ASSIGN_OR_RETURN(auto writer, formats::TfRecordWriter::Create(
                                           output->ReleaseFile(), formats::Compression::kNone));
  return std::make_unique<ExampleWriter>(std::move(output), std::move(writer),
                                         PredictionColumns(options, shape));
}

}  // namespace muster::score
