// ColumnChunk: some rows of a table as typed buffers, column by column, in the layout of Arrow's
// columns (https://arrow.apache.org/docs/format/Columnar.html), into which Parquet pages are
// unpacked as well. It has only views: the code that fills it keeps the buffers alive in `memory`.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"

namespace muster::formats {

enum class BufferType : uint8_t {
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kFloat,
  kDouble,
  kString,  // text or bytes
};

std::string_view BufferTypeName(BufferType type);  // "bool", "int8", ..., "string"

// A column as the head of its file describes it: the same for all chunks.
struct ColumnShape {
  std::string name;
  BufferType type = BufferType::kInt64;
  bool list = false;  // each row has a list of any length
};

// Numbers are little-endian. Bits begin with the lowest bit of the first byte.
struct ColumnBuffers {
  // A bit for each row, set if the row has a value (or a list). Empty: all rows have one.
  std::string_view validity = {};
  // For lists: row r has the values from list_offsets[r] up to, but not including, list_offsets[r +
  // 1]. There are rows + 1 entries, of which the first need not be 0.
  std::span<const int32_t> list_offsets = {};
  // For lists: a bit for each value. Empty: no value is null.
  std::string_view value_validity = {};
  // The numbers one after the other, the bits of kBool, or the bytes of all strings.
  std::string_view values = {};
  // For strings: string v has the bytes from string_offsets[v] up to, but not including,
  // string_offsets[v + 1].
  std::span<const int32_t> string_offsets = {};
};

struct ColumnChunk {
  uint32_t rows = 0;
  std::vector<ColumnBuffers> columns = {};  // in the order of the shapes
  std::shared_ptr<const void> memory = {};  // the memory that the views point into
};

// Checks that everything that the rows of the chunk refer to lies in its buffers. Must be called
// once for a chunk before it is decoded. DATA_LOSS names the column, and the row if a single row is
// wrong.
absl::Status CheckColumnChunk(const std::vector<ColumnShape>& shapes, const ColumnChunk& chunk);

}  // namespace muster::formats
