#include "muster/formats/bundle.h"

namespace muster::formats {
namespace {

struct TypeRow {
  int value;  // in types.proto
  const char* name;
  size_t bytes;
};

constexpr TypeRow kTypes[] = {
    {1, "float32", 4}, {2, "float64", 8},      {3, "int32", 4},    {4, "uint8", 1},
    {5, "int16", 2},   {6, "int8", 1},         {7, "string", 0},   {8, "complex64", 8},
    {9, "int64", 8},   {10, "bool", 1},        {11, "qint8", 1},   {12, "quint8", 1},
    {13, "qint32", 4}, {14, "bfloat16", 2},    {15, "qint16", 2},  {16, "quint16", 2},
    {17, "uint16", 2}, {18, "complex128", 16}, {19, "float16", 2}, {22, "uint32", 4},
    {23, "uint64", 8},
};

const TypeRow* FindType(DataType type) {
  for (const TypeRow& row : kTypes) {
    if (row.value == static_cast<int>(type)) return &row;
  }
  return nullptr;
}

}  // namespace

size_t DataTypeBytes(DataType type) {
  const TypeRow* row = FindType(type);
  return row == nullptr ? 0 : row->bytes;
}

std::string DataTypeName(DataType type) {
  const TypeRow* row = FindType(type);
  return row == nullptr ? StrCat("type ", static_cast<int>(type)) : row->name;
}

std::optional<int64_t> ElementCount(std::span<const int64_t> shape) {
  constexpr int64_t kLimit = int64_t{1} << 62;
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(count, size, &count) || count > kLimit) {
      return std::nullopt;
    }
  }
  return count;
}

}  // namespace muster::formats
