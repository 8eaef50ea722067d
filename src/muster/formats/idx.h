// IDX files, the format of MNIST and similar data: a type, dimensions, and the elements of one
// array, all big-endian; plain, or the whole file as one GZIP or ZLIB stream. See
// docs/formats/idx.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::formats {

// The values are the bytes that stand for the types in a file.
enum class IdxType : uint8_t {
  kUint8 = 0x08,
  kInt8 = 0x09,
  kInt16 = 0x0B,
  kInt32 = 0x0C,
  kFloat32 = 0x0D,
  kFloat64 = 0x0E,
};

size_t IdxTypeBytes(IdxType type);
std::string_view IdxTypeName(IdxType type);  // "uint8", as NumPy calls it

constexpr uint64_t kMaxIdxItemBytes = uint64_t{1} << 28;  // larger items are refused as broken

// Reads the array item by item, along the first dimension. One owner thread. Errors are DATA_LOSS
// "FILE: ..." with the cause: not an IDX file, dimensions out of range, a truncated file, bytes
// after the last item, broken compression. Memory is allocated as bytes arrive, never by the
// dimensions alone.
class IdxReader {
 public:
  // Reads the header. Keeps `file`.
  static absl::StatusOr<std::unique_ptr<IdxReader>> Open(
      std::shared_ptr<const io::RandomAccessFile> file);
  virtual ~IdxReader() = default;

  virtual IdxType type() const = 0;
  virtual uint64_t items() const = 0;
  virtual const std::vector<int64_t>& shape() const = 0;  // of an item
  virtual uint64_t item_bytes() const = 0;                // at least 1
  // Sets *item to the next item, whose elements are little-endian and which is valid until the next
  // call. Returns false after the last item, where the file must end. After an error every further
  // call returns it again.
  virtual absl::StatusOr<bool> Next(std::string_view* item) = 0;
};

// Returns the value of an item that is one element of an integer type.
int64_t IdxInteger(IdxType type, std::string_view item);
bool IsIdxInteger(IdxType type);

}  // namespace muster::formats
