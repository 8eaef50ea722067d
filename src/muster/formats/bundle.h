// TensorFlow's checkpoint "bundle": PREFIX.index, a sorted table (leveldb's SSTable format) from
// tensor name to a BundleEntryProto, and PREFIX.data-00000-of-0000N, the bytes. Read and written by
// tf.train.load_checkpoint. docs/formats/bundle.md; source:
// tensorflow/core/util/tensor_bundle/tensor_bundle.h, tensorflow/core/lib/io/format.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::formats {

// Values of tensorflow/core/framework/types.proto.
enum class DataType : int { kFloat = 1, kInt32 = 3, kString = 7, kInt64 = 9, kBool = 10 };

struct TensorInfo {
  DataType type = DataType::kFloat;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;  // in the data file
};

// Writes PREFIX.data-00000-of-00001 and PREFIX.index under temporary names; Finish() syncs and
// renames both, the index last: without an index there is no checkpoint. Tensors may come in any
// order. Destroying an unfinished writer removes its temporary files. One owner thread.
class BundleWriter {
 public:
  static absl::StatusOr<std::unique_ptr<BundleWriter>> Create(io::FileSystem& files,
                                                              const std::string& prefix);
  virtual ~BundleWriter() = default;
  // `bytes` are the elements in row-major order, little-endian.
  virtual absl::Status Add(std::string_view name, DataType type, std::span<const int64_t> shape,
                           std::string_view bytes) = 0;
  virtual absl::Status AddStrings(std::string_view name, std::span<const int64_t> shape,
                                  std::span<const std::string> values) = 0;
  virtual absl::Status Finish() = 0;
};

// Thread-safe after Open. All lengths are checked against the files before memory is taken;
// checksums of blocks and tensors are checked. Errors are DATA_LOSS with file and offset, NOT_FOUND
// for a tensor that is not there (with the nearest name).
class BundleReader {
 public:
  static absl::StatusOr<std::unique_ptr<BundleReader>> Open(io::FileSystem& files,
                                                            const std::string& prefix);
  virtual ~BundleReader() = default;
  virtual const std::map<std::string, TensorInfo>& tensors() const = 0;
  // `*buffer` must have exactly the tensor's bytes.
  virtual absl::Status Read(std::string_view name, std::span<char> buffer) const = 0;
  virtual absl::StatusOr<std::vector<std::string>> ReadStrings(std::string_view name) const = 0;
};

}  // namespace muster::formats
