#include "muster/cli/records/record_feed.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "muster/cli/common/format_flags.h"
#include "muster/data/batch_stream_reader.h"
#include "muster/data/source.h"
#include "muster/formats/batch_stream.h"
#include "muster/formats/columns.h"
#include "muster/formats/csv.h"
#include "muster/formats/example.h"
#include "muster/formats/tfrecord.h"
#include "muster/io/local_file_system.h"

namespace muster::cli {
namespace {

constexpr size_t kHeadBytes = size_t{64} << 10;

// A file that gives its bytes once and in order, but for the first ones, which can be read again to
// find out what it holds.
class HeadFile : public io::RandomAccessFile {
 public:
  static absl::StatusOr<std::shared_ptr<const HeadFile>> Open(
      std::unique_ptr<io::RandomAccessFile> file) {
    std::string head(kHeadBytes, '\0');
    MUSTER_ASSIGN_OR_RETURN(const size_t size, file->Read(0, head.size(), head.data()));
    head.resize(size);
    return std::make_shared<const HeadFile>(std::move(file), std::move(head));
  }
  HeadFile(std::unique_ptr<io::RandomAccessFile> file, std::string head)
      : file_(std::move(file)), head_(std::move(head)) {}

  absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
    size_t done = 0;
    if (offset < head_.size()) {
      done = std::min<uint64_t>(size, head_.size() - offset);
      std::memcpy(buffer, head_.data() + offset, done);
    }
    if (done == size || head_.size() < kHeadBytes) return done;
    MUSTER_ASSIGN_OR_RETURN(const size_t more,
                            file_->Read(offset + done, size - done, buffer + done));
    return done + more;
  }
  const std::string& path() const override { return file_->path(); }
  std::string_view head() const { return head_; }

 private:
  const std::unique_ptr<io::RandomAccessFile> file_;
  const std::string head_;
};

absl::Status FeedBatches(std::shared_ptr<const io::RandomAccessFile> file, const TakeRecord& take) {
  MUSTER_ASSIGN_OR_RETURN(const auto stream, data::OpenWholeBatchStream(std::move(file)));
  const formats::ExampleEncoder encoder(stream.schema);
  formats::Columns columns(stream.schema);
  std::string record;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const bool more, stream.reader->Next(&columns));
    if (!more) return absl::OkStatus();
    for (int row = 0; row < columns.rows(); ++row) {
      encoder.Encode(columns, row, &record);
      MUSTER_RETURN_IF_ERROR(take(record));
    }
  }
}

// `reader` is of TFRecord or of rows of text.
template <typename Reader>
absl::Status FeedAll(Reader& reader, const TakeRecord& take) {
  std::string_view record;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const bool more, reader.Next(&record));
    if (!more) return absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(take(record));
  }
}

absl::Status FeedStandardInput(io::FileSystem& files, const formats::DataFormat& format,
                               const TakeRecord& take) {
  using formats::FileFormat;
  MUSTER_ASSIGN_OR_RETURN(auto input, files.OpenForRead(std::string(io::kStandardInput)));
  MUSTER_ASSIGN_OR_RETURN(const auto file, HeadFile::Open(std::move(input)));
  const std::string_view head = file->head();
  if (head.empty()) return absl::OkStatus();
  if (format.type == FileFormat::kTfRecord) {
    MUSTER_ASSIGN_OR_RETURN(const auto reader,
                            formats::TfRecordReader::Open(file, formats::Compression::kNone));
    return FeedAll(*reader, take);
  }
  if (!format.type &&
      formats::ParseStreamPrefix(head.substr(0, formats::kStreamPrefixBytes)).ok()) {
    return FeedBatches(file, take);
  }
  formats::CsvOptions csv = format.csv(',');
  csv.header = format.header.value_or(false);
  const bool is_json = format.type ? *format.type == FileFormat::kJsonLines : head.starts_with('{');
  if (is_json) csv.quote = '\0';  // a line is a record
  MUSTER_ASSIGN_OR_RETURN(const auto reader, formats::CsvRowReader::Open(file, csv));
  return FeedAll(*reader, take);
}

}  // namespace

absl::Status FeedRecords(io::FileSystem& files, const std::vector<std::string>& patterns,
                         const formats::DataFormat& format, const TakeRecord& take) {
  if (patterns == std::vector<std::string>{"-"}) return FeedStandardInput(files, format, take);
  if (std::ranges::find(patterns, "-") != patterns.end()) {
    return absl::InvalidArgumentError("- is standard input: give it alone");
  }
  MUSTER_ASSIGN_OR_RETURN(
      const auto source,
      data::OpenSource(files, {.patterns = patterns, .format = format, .note = PrintNotesOnce()}));
  for (size_t number = 0; number < source->chunks().size(); ++number) {
    MUSTER_ASSIGN_OR_RETURN(const auto stream, source->Stream(number));
    while (true) {
      MUSTER_ASSIGN_OR_RETURN(const auto piece, stream->Next());
      if (piece == nullptr) break;
      MUSTER_RETURN_IF_ERROR(source->CountBad(number, *piece));
      for (const std::string_view record : piece->records) MUSTER_RETURN_IF_ERROR(take(record));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::cli
