#include "muster/data/batch_stream_reader.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"

#include "muster/formats/batch_stream.h"
#include "muster/formats/compression.h"
#include "muster/io/local_file_system.h"

namespace muster::data {
namespace {

constexpr std::string_view kStreamEnding = ".batches";
constexpr size_t kFirstReadBytes = size_t{1} << 20;

class BatchStreamReader : public BatchReader {
 public:
  BatchStreamReader(std::string path, std::unique_ptr<formats::ByteStream> bytes,
                    const ReaderSpec& spec)
      : path_(std::move(path)), bytes_(std::move(bytes)), spec_(spec) {}

  absl::Status Start(const formats::Schema& schema) {
    MUSTER_ASSIGN_OR_RETURN(const std::string header, ReadHeader());
    MUSTER_ASSIGN_OR_RETURN(decoder_, formats::BatchStreamDecoder::Create(header, schema));
    return absl::OkStatus();
  }

  // With all columns of the stream, which are the schema that is returned.
  absl::StatusOr<formats::Schema> StartWhole() {
    MUSTER_ASSIGN_OR_RETURN(const std::string header, ReadHeader());
    MUSTER_ASSIGN_OR_RETURN(formats::Schema schema, formats::ParseStreamSchema(header));
    MUSTER_ASSIGN_OR_RETURN(decoder_, formats::BatchStreamDecoder::Create(header, schema));
    return schema;
  }

  absl::StatusOr<bool> Next(formats::Columns* columns) override {
    columns->Clear();
    if (ended_) return false;
    ++batch_;
    const absl::Status status = ReadBatch(columns);
    if (!status.ok()) {
      ended_ = true;
      columns->Clear();
      return Annotate(status, StrCat(path_, ": batch ", batch_));
    }
    first_number_ = emitted_;
    rows_.resize(columns->rows());
    std::iota(rows_.begin(), rows_.end(), 0);
    emitted_ += rows_.size();
    return !ended_;
  }

  Position position() const override {
    Position position;
    position.seed = spec_.seed;
    position.emitted = emitted_;
    position.bad_records = bad_rows_;
    return position;
  }
  int64_t epoch() const override { return 0; }
  std::string Origin(int row) const override {
    return StrCat(path_, ": batch ", batch_, ", row ", rows_[row] + 1);
  }
  uint64_t Number(int row) const override {
    return first_number_ + static_cast<uint64_t>(rows_[row]);
  }

  absl::Status RejectRow(int row, const absl::Status& why, formats::Columns* columns) override {
    if (++bad_rows_ > spec_.max_bad_records) {
      return TooManyBad(Annotate(why, Origin(row)), spec_.max_bad_records);
    }
    if (spec_.take_bad_record) {
      spec_.take_bad_record({.number = Number(row), .where = Origin(row), .bytes = "", .why = why});
    }
    columns->RemoveRow(row);
    rows_.erase(rows_.begin() + row);
    return absl::OkStatus();
  }
  // The writer chose the batches: one that has lost rows is not filled up.
  absl::StatusOr<bool> Refill(formats::Columns* columns) override { return columns->rows() > 0; }
  uint64_t bad_rows() const override { return bad_rows_; }

 private:
  absl::StatusOr<std::string> ReadHeader() {
    std::string bytes;
    MUSTER_RETURN_IF_ERROR(Read(formats::kStreamPrefixBytes, &bytes));
    MUSTER_ASSIGN_OR_RETURN(const size_t size, formats::ParseStreamPrefix(bytes));
    MUSTER_RETURN_IF_ERROR(Read(size, &bytes));
    return bytes;
  }

  absl::Status ReadBatch(formats::Columns* columns) {
    std::string bytes;
    MUSTER_RETURN_IF_ERROR(Read(formats::kFramePrefixBytes, &bytes));
    MUSTER_ASSIGN_OR_RETURN(const formats::FramePrefix frame, formats::ParseFramePrefix(bytes));
    if (frame.rows == 0) {
      ended_ = true;
      return absl::OkStatus();
    }
    // The columns have released the last payload, so its memory can be reused.
    if (payload_.use_count() != 1) payload_ = std::make_shared<std::string>();
    MUSTER_RETURN_IF_ERROR(Read(frame.bytes, payload_.get()));
    return decoder_->Decode(frame, payload_, columns);
  }

  // Reads exactly `size` bytes. Memory grows with the bytes that arrive, not with the announced
  // size.
  absl::Status Read(uint64_t size, std::string* bytes) {
    uint64_t done = 0;
    while (done < size) {
      if (bytes->size() < size) {
        bytes->resize(std::min<uint64_t>(size, std::max<uint64_t>(kFirstReadBytes, 2 * done)));
      }
      const size_t wanted = std::min<uint64_t>(bytes->size(), size) - done;
      MUSTER_ASSIGN_OR_RETURN(const size_t got, bytes_->Read(wanted, bytes->data() + done));
      if (got == 0) {
        return absl::DataLossError(
            "the stream ends before its end marker: the program that writes it failed or was "
            "stopped");
      }
      done += got;
    }
    bytes->resize(size);
    return absl::OkStatus();
  }

  const std::string path_;
  const std::unique_ptr<formats::ByteStream> bytes_;
  const ReaderSpec spec_;
  std::unique_ptr<formats::BatchStreamDecoder> decoder_;
  std::shared_ptr<std::string> payload_;
  std::vector<int> rows_;  // of the batch, counted as in the stream
  uint64_t batch_ = 0;
  uint64_t emitted_ = 0;
  uint64_t first_number_ = 0;  // of the batch
  uint64_t bad_rows_ = 0;
  bool ended_ = false;
};

std::unique_ptr<BatchStreamReader> NewReader(std::shared_ptr<const io::RandomAccessFile> file,
                                             const ReaderSpec& spec) {
  const std::string path = file->path();
  return std::make_unique<BatchStreamReader>(
      path, formats::NewByteStream(std::move(file), formats::Compression::kNone), spec);
}

}  // namespace

bool IsBatchStream(const SourceSpec& spec) {
  return std::any_of(spec.patterns.begin(), spec.patterns.end(), [](const std::string& pattern) {
    return pattern == "-" || absl::EndsWith(pattern, ToAbsl(kStreamEnding));
  });
}

absl::StatusOr<std::unique_ptr<BatchReader>> OpenBatchStream(io::FileSystem& files,
                                                             const SourceSpec& source,
                                                             const formats::Schema& schema,
                                                             const ReaderSpec& spec) {
  if (source.patterns.size() != 1) {
    return absl::InvalidArgumentError(StrCat("a stream of batches must be the only input, but ",
                                             source.patterns.size(), " were given"));
  }
  const std::string path =
      source.patterns[0] == "-" ? std::string(io::kStandardInput) : source.patterns[0];
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const io::RandomAccessFile> file,
                          files.OpenForRead(path));
  return OpenBatchStreamOf(std::move(file), schema, spec);
}

absl::StatusOr<std::unique_ptr<BatchReader>> OpenBatchStreamOf(
    std::shared_ptr<const io::RandomAccessFile> file, const formats::Schema& schema,
    const ReaderSpec& spec) {
  const std::string path = file->path();
  auto reader = NewReader(std::move(file), spec);
  MUSTER_RETURN_IF_ERROR(Annotate(reader->Start(schema), path));
  return reader;
}

absl::StatusOr<WholeBatchStream> OpenWholeBatchStream(
    std::shared_ptr<const io::RandomAccessFile> file) {
  const std::string path = file->path();
  auto reader = NewReader(std::move(file), {});
  auto schema = reader->StartWhole();
  if (!schema.ok()) return Annotate(schema.status(), path);
  return WholeBatchStream{*std::move(schema), std::move(reader)};
}

}  // namespace muster::data
