// CSV (RFC 4180): quoted cells, "" inside quotes, embedded line breaks, LF or CRLF; a UTF-8 BOM is
// skipped; the first row names the columns. A quote opens a cell only as its first byte; elsewhere
// in an unquoted cell it is an ordinary character. See docs/formats/csv.md.
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

// What to do with a row that is not UTF-8.
enum class EncodingErrors : uint8_t {
  kKeep,     // keeps its bytes
  kError,    // makes it a bad row
  kReplace,  // replaces each wrong byte by U+FFFD
  kLatin1,   // reads the whole row as Latin-1 (ISO 8859-1)
};

struct CsvOptions {
  char delimiter = ',';  // any byte but the quote, CR, LF and NUL
  char quote = '"';      // 0: no quotes, each line is a row
  bool header = true;    // false: the first row is data
  bool trim = false;     // removes spaces and tabs around cells, also before a quote
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

  // Returns the number of bytes of the row that `text` begins with, including its line end; kMore
  // if the row does not end in `text`. Then the next call must pass the same row with more bytes;
  // no byte is examined twice.
  size_t Find(std::string_view text);

  // After kMore: whether the text ends inside quotes, which opened at quote_position().
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

// Returns the row without its LF or CRLF.
std::string_view StripLineEnd(std::string_view row);

// Cuts a byte stream into rows (raw text, without the line end), respecting quotes. GZIP and
// Zstandard input is decompressed (detected by content, not by name). Blank lines are skipped. One
// owner thread. Holds 256 KiB, or up to twice kMaxCsvRowBytes for a row of that length. DATA_LOSS
// "FILE:LINE: ..." for an unclosed quote (with the line where it opened), a row over
// kMaxCsvRowBytes, or broken compression; INVALID_ARGUMENT for an empty or UTF-16 file. After an
// error every further call returns it again.
class CsvRowReader {
 public:
  // Reads the header immediately, if there is one, and converts it by options.encoding_errors.
  // Keeps `file`.
  static absl::StatusOr<std::unique_ptr<CsvRowReader>> Open(
      std::shared_ptr<const io::RandomAccessFile> file, CsvOptions options = {});
  virtual ~CsvRowReader() = default;
  virtual const std::vector<std::string>& header() const = 0;
  // Sets *row to the next row, valid until the next call; returns false at the end.
  virtual absl::StatusOr<bool> Next(std::string_view* row) = 0;
  // Where the row that Next() last returned begins: its line (from 1, counting the header) and its
  // (uncompressed) byte.
  virtual uint64_t line() const = 0;
  virtual uint64_t row_offset() const = 0;
  // The byte after the row that Next() last returned.
  virtual uint64_t offset() const = 0;
};

// Returns a row as `errors` says: unchanged if it is UTF-8 or kKeep. INVALID_ARGUMENT: kError.
absl::StatusOr<std::string> ConvertCsvRow(std::string_view row, EncodingErrors errors);

// Splits one row into unquoted cells. Cells point into `row`, or into `scratch` if doubled quotes
// had to be removed. INVALID_ARGUMENT if a quoted cell continues after its closing quote.
absl::Status SplitCsvRow(std::string_view row, CsvOptions options,
                         std::vector<std::string_view>* cells, std::string* scratch);

// Makes a decoder of rows, which finds the schema's fields in the header, in any order (NOT_FOUND
// names a missing column and the nearest word of the header; INVALID_ARGUMENT names a column that
// occurs twice). A row belongs to the first of `headers` until RowDecoder::UseLayout selects
// another. Errors name column and value: "column 'age': 'x12' is not an int"; for a row of wrong
// length they give the number of cells that it has and should have. Numbers may have a '+' and
// surrounding spaces; "3.0" is an int, "3.5" only with Field::truncate; NaN and infinities are
// errors. Strings are not changed.
absl::StatusOr<std::unique_ptr<RowDecoder>> NewCsvDecoder(
    const Schema& schema, std::span<const std::vector<std::string>> headers,
    CsvOptions options = {});
absl::StatusOr<std::unique_ptr<RowDecoder>> NewCsvDecoder(const Schema& schema,
                                                          const std::vector<std::string>& header,
                                                          CsvOptions options = {});

// Describes how the columns of two headers differ, apart from their order: "column 'x' is missing;
// column 'y' is additional"; "" if they have the same columns.
std::string DescribeOtherColumns(const std::vector<std::string>& wanted,
                                 const std::vector<std::string>& there);

// Appends a cell to *line, quoted if necessary.
void AppendCsvCell(std::string_view cell, char delimiter, std::string* line);

}  // namespace muster::formats
