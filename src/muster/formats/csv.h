// CSV (RFC 4180): quoted cells, "" inside quotes, embedded newlines, LF or CRLF, a UTF-8 BOM
// skipped; the first row names the columns. A quote opens a cell only at its first byte; anywhere
// else in an unquoted cell it is an ordinary character. docs/formats/csv.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/columns.h"
#include "muster/formats/decoder.h"
#include "muster/formats/schema.h"
#include "muster/io/file_system.h"

namespace muster::formats {

// What becomes of a row that is not UTF-8.
enum class EncodingErrors : uint8_t {
  kKeep,     // its bytes are taken as they are
  kError,    // it is a bad row
  kReplace,  // each wrong byte becomes U+FFFD
  kLatin1,   // all of the row is read as Latin-1 (ISO 8859-1)
};

struct CsvOptions {
  char delimiter = ',';  // any byte but the quote, CR, LF and NUL
  char quote = '"';      // 0: there are no quotes, each line is a row
  bool header = true;    // false: the first row is data
  bool trim = false;     // spaces and tabs around a cell are no part of it, also before a quote
  EncodingErrors encoding_errors = EncodingErrors::kKeep;
  friend bool operator==(const CsvOptions&, const CsvOptions&) = default;
};

constexpr uint64_t kMaxCsvRowBytes = uint64_t{16} << 20;

// INVALID_ARGUMENT for a byte that cannot be a delimiter.
absl::Status CheckCsvOptions(CsvOptions options);

// Finds where rows end in text that may still grow. One owner thread.
class CsvRowScanner {
 public:
  static constexpr size_t kMore = ~size_t{0};

  explicit CsvRowScanner(CsvOptions options)
      : delimiter_(options.delimiter), quote_char_(options.quote), trim_(options.trim) {}

  // The number of bytes of the row that `text` starts with, including its line end; kMore when the
  // row's end is not in `text`. Then the next call must give the same row with more bytes; no byte
  // is examined twice.
  size_t Find(std::string_view text);

  // After kMore: the text ends inside quotes that opened at quote_position().
  bool in_quotes() const { return state_ == State::kQuoted; }
  size_t quote_position() const { return quote_; }

 private:
  enum class State { kNoQuoteYet, kCellStart, kPlain, kQuoted, kAfterQuote };
  size_t FindQuoted(std::string_view text);

  char delimiter_;
  char quote_char_;
  bool trim_;
  State state_ = State::kNoQuoteYet;
  size_t seen_ = 0;
  size_t quote_ = 0;
};

// The row without its LF or CRLF.
std::string_view StripLineEnd(std::string_view row);

// Cuts a byte stream into rows (raw text, without the line end), respecting quotes; GZIP and
// Zstandard input is decompressed (detected by content, not by name). Blank lines are skipped. One
// owner thread. Holds 256 KiB, or up to twice kMaxCsvRowBytes for a row of that length. Errors:
// DATA_LOSS "FILE:LINE: ..." for an unclosed quote (naming the line where it opened), a row over
// kMaxCsvRowBytes, broken compression; INVALID_ARGUMENT for an empty or UTF-16 file. After an error
// every further call returns it again.
class CsvRowReader {
 public:
  // Reads the header, if there is one, at once. Keeps `file`.
  static absl::StatusOr<std::unique_ptr<CsvRowReader>> Open(
      std::shared_ptr<const io::RandomAccessFile> file, CsvOptions options = {});
  virtual ~CsvRowReader() = default;
  virtual const std::vector<std::string>& header() const = 0;
  // The next row, valid until the next call; false at the end.
  virtual absl::StatusOr<bool> Next(std::string_view* row) = 0;
  // Where the row that Next() last returned starts: line (1-based, header included) and
  // (uncompressed) byte.
  virtual uint64_t line() const = 0;
  virtual uint64_t row_offset() const = 0;
  // The byte after the row that Next() last returned.
  virtual uint64_t offset() const = 0;
};

// Splits one row into cells, unquoted. Cells point into `row`, or into `scratch` if doubled quotes
// had to be removed. INVALID_ARGUMENT when a quoted cell continues after its closing quote.
absl::Status SplitCsvRow(std::string_view row, CsvOptions options,
                         std::vector<std::string_view>* cells, std::string* scratch);

// Decodes rows to Columns: finds the schema's fields in the header, in any order (NOT_FOUND names a
// missing column and the nearest header word; INVALID_ARGUMENT names a column that occurs twice). A
// row belongs to the first of `headers` until RowDecoder::UseLayout says another. Errors
// name column and value: "column 'age': 'x12' is not an int"; for a ragged row they say how many
// cells it has and should have. Numbers may have a '+' and surrounding spaces; "3.0" is an int,
// "3.5" only with Field::truncate; NaN and infinities are errors. Strings are taken unchanged.
absl::StatusOr<std::unique_ptr<RowDecoder>> NewCsvDecoder(
    const Schema& schema, std::span<const std::vector<std::string>> headers,
    CsvOptions options = {});
absl::StatusOr<std::unique_ptr<RowDecoder>> NewCsvDecoder(const Schema& schema,
                                                          const std::vector<std::string>& header,
                                                          CsvOptions options = {});

// Which columns differ between two headers, apart from their order: "column 'x' is missing; column
// 'y' is additional"; "" if they have the same columns.
std::string DescribeOtherColumns(const std::vector<std::string>& wanted,
                                 const std::vector<std::string>& there);

// Appends a cell to *line, quoted if necessary.
void AppendCsvCell(std::string_view cell, char delimiter, std::string* line);

}  // namespace muster::formats
