#include "muster/formats/column_chunk.h"

#include <bit>

namespace muster::formats {
namespace {

static_assert(std::endian::native == std::endian::little);

absl::Status BrokenColumn(const ColumnShape& shape, std::string_view what) {
  return absl::DataLossError(StrCat("column '", shape.name, "': ", what));
}

// Whether there are bits for `count` values, or no bits at all.
bool HasBits(std::string_view bits, uint64_t count) {
  return bits.empty() || bits.size() >= (count + 7) / 8;
}

uint64_t BytesOfNumbers(BufferType type, uint64_t count) {
  switch (type) {
    case BufferType::kBool:
      return (count + 7) / 8;
    case BufferType::kInt8:
    case BufferType::kUint8:
      return count;
    case BufferType::kInt16:
    case BufferType::kUint16:
      return 2 * count;
    case BufferType::kInt32:
    case BufferType::kUint32:
    case BufferType::kFloat:
      return 4 * count;
    case BufferType::kInt64:
    case BufferType::kUint64:
    case BufferType::kDouble:
      return 8 * count;
    case BufferType::kString:
      break;
  }
  return 0;
}

// Checks that `offsets` are `count` + 1 numbers that do not descend. *end becomes the last one.
absl::Status CheckOffsets(const ColumnShape& shape, std::string_view kind,
                          std::span<const int32_t> offsets, uint64_t count, uint64_t* end) {
  if (offsets.size() <= count) {
    return BrokenColumn(shape, StrCat(offsets.size(), " offsets of ", kind, ", not ", count + 1));
  }
  int32_t before = 0;
  for (uint64_t i = 0; i <= count; ++i) {
    if (offsets[i] < before) {
      return BrokenColumn(shape, StrCat("the offsets of ", kind, " descend at number ", i));
    }
    before = offsets[i];
  }
  *end = static_cast<uint64_t>(before);
  return absl::OkStatus();
}

absl::Status CheckColumn(const ColumnShape& shape, const ColumnBuffers& buffers, uint64_t rows) {
  if (!HasBits(buffers.validity, rows)) {
    return BrokenColumn(shape, StrCat("validity bits are missing for some of the ", rows, " rows"));
  }
  uint64_t values = rows;
  if (shape.list) {
    MUSTER_RETURN_IF_ERROR(CheckOffsets(shape, "lists", buffers.list_offsets, rows, &values));
    if (!HasBits(buffers.value_validity, values)) {
      return BrokenColumn(shape,
                          StrCat("validity bits are missing for some of the ", values, " values"));
    }
  }
  uint64_t bytes = BytesOfNumbers(shape.type, values);
  if (shape.type == BufferType::kString) {
    MUSTER_RETURN_IF_ERROR(CheckOffsets(shape, "strings", buffers.string_offsets, values, &bytes));
  }
  if (buffers.values.size() >= bytes) return absl::OkStatus();
  return BrokenColumn(shape, StrCat(values, " values need ", bytes, " bytes, but there are ",
                                    buffers.values.size()));
}

}  // namespace

std::string_view BufferTypeName(BufferType type) {
  constexpr std::string_view kNames[] = {"bool",   "int8",   "int16",  "int32", "int64",  "uint8",
                                         "uint16", "uint32", "uint64", "float", "double", "string"};
  return kNames[static_cast<size_t>(type)];
}

absl::Status CheckColumnChunk(const std::vector<ColumnShape>& shapes, const ColumnChunk& chunk) {
  if (chunk.columns.size() != shapes.size()) {
    return absl::DataLossError(
        StrCat("a chunk of ", chunk.columns.size(), " columns, but the data has ", shapes.size()));
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    MUSTER_RETURN_IF_ERROR(CheckColumn(shapes[i], chunk.columns[i], chunk.rows));
  }
  return absl::OkStatus();
}

}  // namespace muster::formats
