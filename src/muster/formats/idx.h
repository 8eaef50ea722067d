// IDX files, in which MNIST and its kin come: a type, dimensions, and the elements of one array,
// all big-endian; plain, or the whole file as one GZIP or ZLIB stream. docs/formats/idx.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::formats {

// By the file's byte for it.
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

constexpr uint64_t kMaxIdxItemBytes = uint64_t{1} << 28;  // larger ones are refused as broken

// Reads the array item by item: what the first dimension counts. One owner thread. Errors are
// DATA_LOSS "FILE: ..." with what is wrong: no IDX file, dimensions beyond what may be, a cut file,
// bytes behind the last item, broken compression. Memory is taken as bytes arrive, never by the
// dimensions alone.
class IdxReader {
 public:
  // Reads the head. Keeps `file`.
  static absl::StatusOr<std::unique_ptr<IdxReader>> Open(
      std::shared_ptr<const io::RandomAccessFile> file);
  virtual ~IdxReader() = default;

  virtual IdxType type() const = 0;
  virtual uint64_t items() const = 0;
  virtual const std::vector<int64_t>& shape() const = 0;  // of an item
  virtual uint64_t item_bytes() const = 0;                // at least 1
  // The next item, its elements little-endian, valid until the next call; false behind the last
  // one, where the file must end. After an error every further call gives that.
  virtual absl::StatusOr<bool> Next(std::string_view* item) = 0;
};

// An item of one element of a whole-numbered type.
int64_t IdxInteger(IdxType type, std::string_view item);
bool IsIdxInteger(IdxType type);

}  // namespace muster::formats
