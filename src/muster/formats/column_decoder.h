// ColumnDecoder: decodes chunks of columns into rows of Columns, column by column; RowDecoder
// (decoder.h) does the same for records. It gives the same columns, missing values and errors as
// the decoder of tf.Examples for the same values; its test is column_decoder_conformance.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/column_chunk.h"
#include "muster/formats/columns.h"
#include "muster/formats/schema.h"

namespace muster::formats {

// A row that does not fit the schema.
struct BadRow {
  size_t place = 0;  // index in the `rows` that were requested
  absl::Status why;  // INVALID_ARGUMENT that names column and value (the caller adds file and row)
};

// One owner thread.
class ColumnDecoder {
 public:
  virtual ~ColumnDecoder() = default;
  // Appends these rows of the chunk, in this order; a row may occur more than once. Rows that do
  // not fit are left out and appended to *bad, in order, each with its first error in the order of
  // the schema. CheckColumnChunk must have accepted the chunk with the decoder's shapes. Strings
  // point into chunk.memory, which *columns keeps alive.
  virtual void Decode(const ColumnChunk& chunk, std::span<const uint32_t> rows, Columns* columns,
                      std::vector<BadRow>* bad) = 0;
};

// For chunks of typed buffers. Fields and columns are matched by name; other columns are skipped. A
// scalar column fills a list field with one value per row; a list column fills a scalar field if
// each list has one value. Ints and bools fill float fields; floats fill int fields that have
// `truncate`. INVALID_ARGUMENT if a field that needs a value has no column, or a column of another
// type.
absl::StatusOr<std::unique_ptr<ColumnDecoder>> NewColumnDecoder(
    const Schema& schema, const std::vector<ColumnShape>& shapes);

}  // namespace muster::formats
