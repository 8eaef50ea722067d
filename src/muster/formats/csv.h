// CSV (RFC 4180): quoted fields, "" inside quotes, embedded newlines, LF or CRLF, a UTF-8 BOM
// skipped; the first row names the columns. docs/formats/csv.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/columns.h"
#include "muster/formats/decoder.h"
#include "muster/formats/schema.h"
#include "muster/io/file_system.h"

namespace muster::formats {

struct CsvOptions {
  char delimiter = ',';
};

constexpr uint64_t kMaxCsvRowBytes = uint64_t{16} << 20;

// Cuts a byte stream into rows (raw text, without the line end), respecting quotes; .gz input is
// inflated (by content, not by name). Blank lines are skipped. One owner thread.
// Errors: DATA_LOSS "FILE:LINE: ..." for an unclosed quote (naming the line where it opened), a row
// over kMaxCsvRowBytes, broken compression; INVALID_ARGUMENT for an empty file.
class CsvRowReader {
 public:
  // Reads the header at once. Keeps `file`.
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
  // Byte behind the row that Next() last returned.
  virtual uint64_t offset() const = 0;
};

// Splits one row into cells, unquoted. Cells point into `row`, or into `scratch` where quotes had
// to be removed. INVALID_ARGUMENT when a quoted cell goes on after its closing quote.
absl::Status SplitCsvRow(std::string_view row, CsvOptions options,
                         std::vector<std::string_view>* cells, std::string* scratch);

// Rows to Columns: finds the schema's fields in the header (NOT_FOUND names a missing column and
// the nearest header word). Errors name column and value: "column 'age': 'x12' is not an int";
// a ragged row says how many cells it has and should have.
absl::StatusOr<std::unique_ptr<RowDecoder>> NewCsvDecoder(const Schema& schema,
                                                          const std::vector<std::string>& header,
                                                          CsvOptions options = {});

// Appends a cell to *line, quoted where it must be.
void AppendCsvCell(std::string_view cell, char delimiter, std::string* line);

}  // namespace muster::formats
