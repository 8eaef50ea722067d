// RowDecoder: decodes one record's bytes to one row of Columns. Implementations: ExampleDecoder
// (example.h), CsvDecoder (csv.h).
#pragma once

#include <memory>
#include <string_view>

#include "muster/base/status.h"
#include "muster/formats/columns.h"

namespace muster::formats {

class RowDecoder {
 public:
  virtual ~RowDecoder() = default;
  // Appends one row. `record` must stay valid as long as the rows (Columns::KeepAlive): strings
  // point into it where possible. On an error nothing is appended; the message names column and
  // value (the caller adds file and offset), the code is INVALID_ARGUMENT for a value that does not
  // fit the schema and DATA_LOSS for bytes that are not a record.
  virtual absl::Status Decode(std::string_view record, Columns* columns) = 0;
  // Of data whose files have their columns in different orders: the next records have those of
  // layout `layout`, counted from 0, which was used before.
  virtual void UseLayout(int /*layout*/) {}
};

}  // namespace muster::formats
