// BundleHeaderProto and BundleEntryProto, the values of a bundle's index, and the keys of slices.
// Source: tensorflow/core/protobuf/tensor_bundle.proto, framework/tensor_shape.proto,
// framework/tensor_slice.proto, util/saved_tensor_slice_util.cc, tsl/lib/strings/ordered_code.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/formats/bundle.h"

namespace muster::formats {

struct BundleHeader {
  int32_t shards = 1;
  bool big_endian = false;
  int32_t min_consumer = 0;  // the lowest version that a reader must have; this reader's is 1
};

// The elements [start, start + length) of one dimension; a length of -1 stands for all of them.
struct Extent {
  int64_t start = 0, length = -1;
  friend bool operator==(const Extent&, const Extent&) = default;
};
// A part of a partitioned tensor: an extent for each dimension.
using TensorSlice = std::vector<Extent>;

struct BundleEntry {
  DataType type = DataType::kFloat;
  std::vector<int64_t> shape;
  int32_t shard = 0;
  int64_t offset = 0;
  int64_t size = 0;
  uint32_t masked_crc = 0;
  // Not empty: a partitioned tensor, whose slices have separate entries (GetSliceKey) and which has
  // no bytes of its own.
  std::vector<TensorSlice> slices = {};
};

constexpr int32_t kBundleVersion = 1;

std::string SerializeBundleHeader(const BundleHeader& header);
std::string SerializeBundleEntry(const BundleEntry& entry);
// The key of a slice's entry, whose shape is that of the slice.
std::string GetSliceKey(std::string_view tensor, const TensorSlice& slice);

// Returns nullopt if the bytes are not such a message.
std::optional<BundleHeader> ParseBundleHeader(std::string_view bytes);
std::optional<BundleEntry> ParseBundleEntry(std::string_view bytes);

}  // namespace muster::formats
