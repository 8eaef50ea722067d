#include <algorithm>
#include <cstring>

#include "muster/formats/csv.h"
#include "zlib.h"

namespace muster::formats {
namespace {

constexpr size_t kReadBytes = size_t{256} << 10;
constexpr size_t kCompressedBytes = size_t{64} << 10;

// The bytes of a file from the start on, inflated where they are GZIP.
class CsvInput {
 public:
  virtual ~CsvInput() = default;
  // Reads up to `size` bytes; 0 at the end.
  virtual absl::StatusOr<size_t> Read(size_t size, char* buffer) = 0;
};

class PlainCsvInput : public CsvInput {
 public:
  explicit PlainCsvInput(std::shared_ptr<const io::RandomAccessFile> file)
      : file_(std::move(file)) {}

  absl::StatusOr<size_t> Read(size_t size, char* buffer) override {
    MUSTER_ASSIGN_OR_RETURN(const size_t count, file_->Read(offset_, size, buffer));
    offset_ += count;
    return count;
  }

 private:
  const std::shared_ptr<const io::RandomAccessFile> file_;
  uint64_t offset_ = 0;
};

// One or several GZIP members, one behind the other (RFC 1952).
class GzipCsvInput : public CsvInput {
 public:
  explicit GzipCsvInput(std::shared_ptr<const io::RandomAccessFile> file)
      : file_(std::move(file)), compressed_(kCompressedBytes) {
    ok_ = inflateInit2(&stream_, 15 + 16) == Z_OK;
  }
  ~GzipCsvInput() override {
    if (ok_) inflateEnd(&stream_);
  }
  GzipCsvInput(const GzipCsvInput&) = delete;
  GzipCsvInput& operator=(const GzipCsvInput&) = delete;

  absl::StatusOr<size_t> Read(size_t size, char* buffer) override {
    if (!ok_) return absl::ResourceExhaustedError(StrCat(file_->path(), ": no memory for zlib"));
    stream_.next_out = reinterpret_cast<Bytef*>(buffer);
    stream_.avail_out = static_cast<uInt>(size);
    while (stream_.avail_out == size) {
      if (stream_.avail_in == 0) {
        MUSTER_ASSIGN_OR_RETURN(const size_t count, Refill());
        if (count == 0 && between_members_) return size_t{0};
        if (count == 0) return Broken("the file is cut short");
      }
      if (between_members_ && inflateReset(&stream_) != Z_OK) return Broken("zlib failed");
      between_members_ = false;
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_STREAM_END) {
        between_members_ = true;
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        return Broken(stream_.msg != nullptr ? stream_.msg : "not GZIP data");
      }
    }
    return size - stream_.avail_out;
  }

 private:
  absl::StatusOr<size_t> Refill() {
    MUSTER_ASSIGN_OR_RETURN(const size_t count,
                            file_->Read(offset_, compressed_.size(), compressed_.data()));
    offset_ += count;
    stream_.next_in = reinterpret_cast<Bytef*>(compressed_.data());
    stream_.avail_in = static_cast<uInt>(count);
    return count;
  }

  absl::Status Broken(std::string_view what) const {
    return absl::DataLossError(StrCat(file_->path(), ": broken GZIP data at byte ",
                                      offset_ - stream_.avail_in, ": ", what));
  }

  const std::shared_ptr<const io::RandomAccessFile> file_;
  std::vector<char> compressed_;
  z_stream stream_ = {};
  uint64_t offset_ = 0;
  bool ok_;
  bool between_members_ = false;
};

absl::StatusOr<std::unique_ptr<CsvInput>> OpenCsvInput(
    std::shared_ptr<const io::RandomAccessFile> file) {
  char magic[2];
  MUSTER_ASSIGN_OR_RETURN(const size_t count, file->Read(0, sizeof magic, magic));
  if (count == 2 && magic[0] == '\x1f' && magic[1] == '\x8b') {
    return std::make_unique<GzipCsvInput>(std::move(file));
  }
  return std::make_unique<PlainCsvInput>(std::move(file));
}

class CsvRowReaderImpl : public CsvRowReader {
 public:
  CsvRowReaderImpl(std::shared_ptr<const io::RandomAccessFile> file,
                   std::unique_ptr<CsvInput> input, CsvOptions options)
      : file_(std::move(file)),
        input_(std::move(input)),
        options_(options),
        scanner_(options.delimiter) {}

  absl::Status ReadHeader();
  const std::vector<std::string>& header() const override { return header_; }
  absl::StatusOr<bool> Next(std::string_view* row) override;
  uint64_t line() const override { return line_; }
  uint64_t row_offset() const override { return row_offset_; }
  uint64_t offset() const override { return buffer_offset_ + begin_; }

 private:
  std::string_view Unread() const { return {buffer_.get() + begin_, end_ - begin_}; }
  // Whole rows and blank lines; the row is not empty.
  absl::StatusOr<bool> NextLine(std::string_view* row);
  absl::Status Fill();
  absl::Status SkipMark();
  absl::Status TooLong() const;
  absl::Status Unclosed(std::string_view detail) const;

  const std::shared_ptr<const io::RandomAccessFile> file_;
  const std::unique_ptr<CsvInput> input_;
  const CsvOptions options_;
  CsvRowScanner scanner_;
  std::vector<std::string> header_;
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
  size_t begin_ = 0, end_ = 0;  // unread bytes of buffer_
  uint64_t buffer_offset_ = 0;  // of buffer_[0] in the (uncompressed) file
  bool at_end_ = false;
  uint64_t line_ = 0;
  uint64_t next_line_ = 1;
  uint64_t row_offset_ = 0;
  absl::Status failed_;
};

// More bytes behind the unread ones.
absl::Status CsvRowReaderImpl::Fill() {
  const size_t unread = end_ - begin_;
  if (unread == capacity_) {
    const size_t capacity = std::max(kReadBytes, 2 * capacity_);
    auto larger = std::make_unique_for_overwrite<char[]>(capacity);
    if (unread > 0) std::memcpy(larger.get(), buffer_.get() + begin_, unread);
    buffer_ = std::move(larger);
    capacity_ = capacity;
  } else if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, unread);
  }
  buffer_offset_ += begin_;
  begin_ = 0;
  end_ = unread;
  MUSTER_ASSIGN_OR_RETURN(const size_t count, input_->Read(capacity_ - end_, buffer_.get() + end_));
  end_ += count;
  at_end_ = count == 0;
  return absl::OkStatus();
}

absl::StatusOr<bool> CsvRowReaderImpl::Next(std::string_view* row) {
  if (!failed_.ok()) return failed_;
  absl::StatusOr<bool> more = NextLine(row);
  if (!more.ok()) failed_ = more.status();
  return more;
}

absl::StatusOr<bool> CsvRowReaderImpl::NextLine(std::string_view* row) {
  while (true) {
    line_ = next_line_;
    size_t size = scanner_.Find(Unread());
    while (size == CsvRowScanner::kMore && !at_end_) {
      if (end_ - begin_ > kMaxCsvRowBytes) return TooLong();
      MUSTER_RETURN_IF_ERROR(Fill());
      size = scanner_.Find(Unread());
    }
    if (size == CsvRowScanner::kMore) {
      if (begin_ == end_) return false;
      if (scanner_.in_quotes()) return Unclosed("is never closed");
      size = end_ - begin_;
      scanner_ = CsvRowScanner(options_.delimiter);
    }
    if (size > kMaxCsvRowBytes) return TooLong();
    const std::string_view text = Unread().substr(0, size);
    row_offset_ = buffer_offset_ + begin_;
    begin_ += size;
    *row = StripLineEnd(text);
    const bool one_line = std::memchr(row->data(), '\n', row->size()) == nullptr;
    next_line_ += one_line ? 1 : std::count(text.begin(), text.end(), '\n');
    if (!row->empty()) return true;
  }
}

absl::Status CsvRowReaderImpl::TooLong() const {
  const std::string limit = StrCat(kMaxCsvRowBytes >> 20, " MiB");
  if (scanner_.in_quotes()) return Unclosed(StrCat("is not closed within ", limit));
  return absl::DataLossError(StrCat(file_->path(), ":", line_, ": the row is longer than ", limit));
}

absl::Status CsvRowReaderImpl::Unclosed(std::string_view detail) const {
  const std::string_view before = Unread().substr(0, scanner_.quote_position());
  const uint64_t line = line_ + std::count(before.begin(), before.end(), '\n');
  return absl::DataLossError(StrCat(file_->path(), ":", line, ": the quote that opens at byte ",
                                    buffer_offset_ + begin_ + scanner_.quote_position(), " ",
                                    detail));
}

// A byte order mark at the start of the file.
absl::Status CsvRowReaderImpl::SkipMark() {
  while (end_ - begin_ < 3 && !at_end_) MUSTER_RETURN_IF_ERROR(Fill());
  if (Unread().starts_with("\xff\xfe") || Unread().starts_with("\xfe\xff")) {
    return absl::InvalidArgumentError(
        StrCat(file_->path(), ": the file is UTF-16; convert it to UTF-8"));
  }
  if (Unread().starts_with("\xef\xbb\xbf")) begin_ += 3;
  return absl::OkStatus();
}

absl::Status CsvRowReaderImpl::ReadHeader() {
  MUSTER_RETURN_IF_ERROR(SkipMark());
  std::string_view row;
  MUSTER_ASSIGN_OR_RETURN(const bool more, Next(&row));
  if (!more) {
    return absl::InvalidArgumentError(StrCat(
        file_->path(), ": the file is empty; the first row of a CSV file names its columns"));
  }
  std::vector<std::string_view> cells;
  std::string scratch;
  MUSTER_RETURN_IF_ERROR(
      Annotate(SplitCsvRow(row, options_, &cells, &scratch), StrCat(file_->path(), ":", line_)));
  header_.assign(cells.begin(), cells.end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CsvRowReader>> CsvRowReader::Open(
    std::shared_ptr<const io::RandomAccessFile> file, CsvOptions options) {
  MUSTER_RETURN_IF_ERROR(CheckCsvOptions(options));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<CsvInput> input, OpenCsvInput(file));
  auto reader = std::make_unique<CsvRowReaderImpl>(std::move(file), std::move(input), options);
  MUSTER_RETURN_IF_ERROR(reader->ReadHeader());
  return reader;
}

}  // namespace muster::formats
