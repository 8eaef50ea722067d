// ColumnChunk: some rows of a table as typed buffers, a column at a time, in the layout of Arrow's
// columns (https://arrow.apache.org/docs/format/Columnar.html), which Parquet pages are unpacked to
// as well. Plain views: the code that fills one keeps the memory in `memory`.
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
  kString,  // or bytes
};

std::string_view BufferTypeName(BufferType type);  // "bool", "int8", ..., "string"

// A column as the head of its file describes it: the same for all chunks.
struct ColumnShape {
  std::string name;
  BufferType type = BufferType::kInt64;
  bool list = false;  // each row has any number of values
};

// Numbers are little-endian. Bits begin with the lowest of the first byte.
struct ColumnBuffers {
  // A bit for each row, set if the row has a value (or a list); empty: all rows have one.
  std::string_view validity = {};
  // Lists: the values of row r are those from list_offsets[r] to before list_offsets[r + 1]; rows +
  // 1 entries, of which the first need not be 0.
  std::span<const int32_t> list_offsets = {};
  // Lists: a bit for each value; empty: none is null.
  std::string_view value_validity = {};
  // Numbers one after the other, bits for kBool, the bytes of all strings.
  std::string_view values = {};
  // Strings: string v is the bytes from string_offsets[v] to before string_offsets[v + 1].
  std::span<const int32_t> string_offsets = {};
};

struct ColumnChunk {
  uint32_t rows = 0;
  std::vector<ColumnBuffers> columns = {};  // as the shapes
  std::shared_ptr<const void> memory = {};  // what the views point into
};

// Whether all that the rows of the chunk name lies in its buffers. Must be called once for a chunk
// before it is decoded. DATA_LOSS names the column, and the row if it is one's fault.
absl::Status CheckColumnChunk(const std::vector<ColumnShape>& shapes, const ColumnChunk& chunk);

}  // namespace muster::formats
