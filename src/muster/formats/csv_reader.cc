#include <algorithm>
#include <cstring>

#include "muster/formats/compression.h"
#include "muster/formats/csv.h"

namespace muster::formats {
namespace {

constexpr size_t kReadBytes = size_t{256} << 10;

class CsvRowReaderImpl : public CsvRowReader {
 public:
  CsvRowReaderImpl(std::shared_ptr<const io::RandomAccessFile> file,
                   std::unique_ptr<ByteStream> input, CsvOptions options)
      : file_(std::move(file)), input_(std::move(input)), options_(options), scanner_(options) {}

  absl::Status ReadHeader();
  const std::vector<std::string>& header() const override { return header_; }
  absl::StatusOr<bool> Next(std::string_view* row) override;
  uint64_t line() const override { return line_; }
  uint64_t row_offset() const override { return row_offset_; }
  uint64_t offset() const override { return buffer_offset_ + begin_; }

 private:
  std::string_view Unread() const { return {buffer_.get() + begin_, end_ - begin_}; }
  // Reads whole rows and skips blank lines; *row is not empty.
  absl::StatusOr<bool> NextLine(std::string_view* row);
  absl::Status Fill();
  absl::Status SkipMark();
  absl::Status TooLong() const;
  absl::Status Unclosed(std::string_view detail) const;

  const std::shared_ptr<const io::RandomAccessFile> file_;
  const std::unique_ptr<ByteStream> input_;
  const CsvOptions options_;
  CsvRowScanner scanner_;
  std::vector<std::string> header_;
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
  size_t begin_ = 0, end_ = 0;  // range of unread bytes in buffer_
  uint64_t buffer_offset_ = 0;  // offset of buffer_[0] in the (uncompressed) file
  bool at_end_ = false;
  uint64_t line_ = 0;
  uint64_t next_line_ = 1;
  uint64_t row_offset_ = 0;
  absl::Status failed_;
};

// Reads more bytes and appends them to the unread ones.
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
  absl::StatusOr<size_t> read = input_->Read(capacity_ - end_, buffer_.get() + end_);
  if (!read.ok() && absl::IsDataLoss(read.status())) {
    return Annotate(read.status(), StrCat(file_->path(), ":", line_));
  }
  MUSTER_ASSIGN_OR_RETURN(const size_t count, std::move(read));
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
      scanner_ = CsvRowScanner(options_);
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

// Skips a byte order mark at the start of the file.
absl::Status CsvRowReaderImpl::SkipMark() {
  while (end_ - begin_ < 3 && !at_end_) MUSTER_RETURN_IF_ERROR(Fill());
  if (Unread().starts_with("\xff\xfe") || Unread().starts_with("\xfe\xff")) {
    return absl::InvalidArgumentError(StrCat(
        file_->path(),
        ": the file is UTF-16; convert it to UTF-8, for example with iconv -f UTF-16 -t UTF-8"));
  }
  if (Unread().starts_with("\xef\xbb\xbf")) begin_ += 3;
  return absl::OkStatus();
}

absl::Status CsvRowReaderImpl::ReadHeader() {
  MUSTER_RETURN_IF_ERROR(SkipMark());
  if (!options_.header) return absl::OkStatus();
  std::string_view row;
  MUSTER_ASSIGN_OR_RETURN(const bool more, Next(&row));
  if (!more) {
    return absl::InvalidArgumentError(
        StrCat(file_->path(),
               ": the file is empty; the first row of a CSV file names its columns "
               "(--no-header: it is data)"));
  }
  const std::string where = StrCat(file_->path(), ":", line_);
  const absl::StatusOr<std::string> text = ConvertCsvRow(row, options_.encoding_errors);
  MUSTER_RETURN_IF_ERROR(Annotate(text.status(), where));
  std::vector<std::string_view> cells;
  std::string scratch;
  MUSTER_RETURN_IF_ERROR(Annotate(SplitCsvRow(*text, options_, &cells, &scratch), where));
  header_.assign(cells.begin(), cells.end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CsvRowReader>> CsvRowReader::Open(
    std::shared_ptr<const io::RandomAccessFile> file, CsvOptions options) {
  MUSTER_RETURN_IF_ERROR(CheckCsvOptions(options));
  MUSTER_ASSIGN_OR_RETURN(const Compression compression, DetectTextCompression(*file));
  std::unique_ptr<ByteStream> input = NewByteStream(file, compression);
  auto reader = std::make_unique<CsvRowReaderImpl>(std::move(file), std::move(input), options);
  MUSTER_RETURN_IF_ERROR(reader->ReadHeader());
  return reader;
}

}  // namespace muster::formats
