// RowDecoder: decodes the bytes of one record into one row of Columns. Implementations:
// ExampleDecoder (example.h), CsvDecoder (csv.h), JsonDecoder (json_lines.h), and of files of
// columns ParquetDecoder (data/parquet/parquet_decoder.h).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "muster/base/status.h"
#include "muster/formats/columns.h"

namespace muster::formats {

class RowDecoder {
 public:
  virtual ~RowDecoder() = default;
  // Appends one row. `record` must stay valid as long as the rows (Columns::KeepAlive): strings
  // point into it where possible. After an error nothing was appended; the message names column and
  // value, and the caller adds file and offset. INVALID_ARGUMENT for a value that does not fit the
  // schema, DATA_LOSS for bytes that are not a record.
  virtual absl::Status Decode(std::string_view record, Columns* columns) = 0;
  // For data whose files have their columns in different orders: the next records have layout
  // number `layout`. A decoder begins with layout 0.
  virtual void UseLayout(int /*layout*/) {}
  // Whether DecodeRun is quicker than Decode for each record.
  virtual bool DecodesRuns() const { return false; }
  // Appends the rows of records that follow one another in one chunk. *decoded becomes how many
  // were appended; after an error, which is that of the next record, the rest were not.
  virtual absl::Status DecodeRun(std::span<const std::string_view> records, Columns* columns,
                                 size_t* decoded) {
    for (*decoded = 0; *decoded < records.size(); ++*decoded) {
      absl::Status status = Decode(records[*decoded], columns);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
};

}  // namespace muster::formats
