// TensorFlow's checkpoint "bundle": PREFIX.index, a sorted table (leveldb's SSTable format) from
// tensor name to a BundleEntryProto, and PREFIX.data-00000-of-0000N, the bytes.
// tf.train.load_checkpoint reads such bundles. See docs/formats/bundle.md; source:
// tensorflow/core/util/tensor_bundle/tensor_bundle.h, tensorflow/core/lib/io/format.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::formats {

// Values of tensorflow/core/framework/types.proto. A reader may encounter any other value that fits
// in an int.
enum class DataType : int {
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kInt64 = 9,
  kBool = 10,
  kBfloat16 = 14,
  kUint16 = 17,
  kHalf = 19,
  kUint32 = 22,
  kUint64 = 23,
};

// Returns the bytes of an element; 0 for strings and for types that are not stored as plain
// elements.
size_t DataTypeBytes(DataType type);
// Returns "float32", "string", ... as NumPy calls them; "type 20" for types that TensorFlow does
// not store.
std::string DataTypeName(DataType type);
// Returns the product; nullopt if a dimension is negative or the product is above 2^62.
std::optional<int64_t> ElementCount(std::span<const int64_t> shape);

struct TensorInfo {
  DataType type = DataType::kFloat;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;  // in the data file
};

// Rows of a tensor (its first dimension) in a file that another process has written.
struct SavedRows {
  int file = 0;  // by AddFile
  int64_t first = 0, count = 0;
  uint64_t offset = 0;  // in the file
  uint32_t crc = 0;     // CRC-32C of their bytes, not masked
};

// Writes PREFIX.data-00000-of-00001 and PREFIX.index under temporary names; Finish() syncs and
// renames both, the index last: without an index there is no checkpoint. If a bundle of this name
// exists, the new data file gets another name (a second, empty shard makes it data-00000-of-00002),
// so that in this case too the rename of the index switches atomically. Files of other processes
// (AddFile) become data files after the first one. Tensors may come in any order. The destructor of
// an unfinished writer removes its temporary files. One owner thread. Errors: INVALID_ARGUMENT for
// a name that is empty, used twice or begins with '\0', and for bytes that do not fit the shape;
// otherwise those of the file system.
class BundleWriter {
 public:
  static absl::StatusOr<std::unique_ptr<BundleWriter>> Create(io::FileSystem& files,
                                                              const std::string& prefix);
  virtual ~BundleWriter() = default;
  // `bytes` are the elements in row-major order, little-endian.
  virtual absl::Status Add(std::string_view name, DataType type, std::span<const int64_t> shape,
                           std::string_view bytes) = 0;
  // As Add, with bytes that `read` provides piece by piece: each call fills all of `piece`.
  using ReadPiece = std::function<absl::Status(std::span<char> piece)>;
  virtual absl::Status AddPieces(std::string_view name, DataType type,
                                 std::span<const int64_t> shape, const ReadPiece& read) = 0;
  virtual absl::Status AddStrings(std::string_view name, std::span<const int64_t> shape,
                                  std::span<const std::string> values) = 0;
  // Takes over a file in the same folder, complete and synced, that another process has written:
  // Finish gives it the name of a data file, the destructor of an unfinished writer removes it.
  // Returns its number.
  virtual int AddFile(std::string path) = 0;
  // Adds a tensor that is partitioned by its first dimension, whose rows are in such files.
  // INVALID_ARGUMENT if `rows`, in any order, are not all of its rows. A tensor without
  // elements has none, and is not partitioned.
  virtual absl::Status AddRows(std::string_view name, DataType type, std::span<const int64_t> shape,
                               std::span<const SavedRows> rows) = 0;
  virtual absl::Status Finish() = 0;
};

// Thread-safe after Open. All lengths are checked against the files before memory is allocated;
// checksums of blocks and tensors are checked. Errors are DATA_LOSS with file and offset; NOT_FOUND
// for a missing tensor (with the nearest name) or a missing index or data file; UNIMPLEMENTED for
// data that TensorFlow may write but Muster does not read: big-endian bundles, and the values of a
// tensor that is partitioned by more than its first dimension (which is listed with 0 bytes).
class BundleReader {
 public:
  // Reads the index and checks that the data files exist and are long enough.
  static absl::StatusOr<std::unique_ptr<BundleReader>> Open(io::FileSystem& files,
                                                            const std::string& prefix);
  virtual ~BundleReader() = default;
  virtual const std::map<std::string, TensorInfo>& tensors() const = 0;
  // `*buffer` must have exactly the tensor's size.
  virtual absl::Status Read(std::string_view name, std::span<char> buffer) const = 0;
  // Reads a tensor piece by piece, in order: `take` gets the bytes from `offset` in the tensor on.
  // Rows of a partitioned tensor are left out, and their checksums not checked, unless `wants` says
  // otherwise of its rows [first, first + count). `wants` may be empty: all are read.
  using WantsRows = std::function<bool(int64_t first, int64_t count)>;
  using TakePiece = std::function<absl::Status(uint64_t offset, std::span<const char> piece)>;
  virtual absl::Status ReadPieces(std::string_view name, const WantsRows& wants,
                                  const TakePiece& take) const = 0;
  virtual absl::StatusOr<std::vector<std::string>> ReadStrings(std::string_view name) const = 0;
  // Reads a tensor of any type and checks its checksum, using little memory.
  virtual absl::Status Verify(std::string_view name) const = 0;
};

}  // namespace muster::formats
