// The file names of a bundle and the format of its string tensors, shared by writer and reader.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"

namespace muster::formats {

// Tensors are read, checksummed and written in pieces of this size, which stay in a core's cache.
constexpr size_t kBundlePieceBytes = size_t{256} << 10;

std::string BundleIndexPath(const std::string& prefix);
// PREFIX.data-00000-of-00001
std::string BundleDataPath(const std::string& prefix, int shard, int shards);

// A string tensor in the data file: varint lengths, a masked CRC-32C of the lengths, the bytes. The
// CRCs are computed over each length as 4 bytes (or 8 if necessary), not over the varint.
struct EncodedStrings {
  std::string bytes;
  uint32_t crc = 0;  // not masked: of the lengths, their stored checksum, and the strings
};
EncodedStrings EncodeStrings(std::span<const std::string> values);

// The inverse of EncodeStrings. Nothing is copied before all lengths are known to fit. `*crc`
// becomes EncodedStrings::crc. DATA_LOSS without a file name.
absl::StatusOr<std::vector<std::string>> DecodeStrings(std::string_view bytes, uint64_t count,
                                                       uint32_t* crc);

}  // namespace muster::formats
