// BundleHeaderProto and BundleEntryProto, the values of a bundle's index.
// Source: tensorflow/core/protobuf/tensor_bundle.proto, framework/tensor_shape.proto.
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

struct BundleEntry {
  DataType type = DataType::kFloat;
  std::vector<int64_t> shape;
  int32_t shard = 0;
  int64_t offset = 0;
  int64_t size = 0;
  uint32_t masked_crc = 0;
  int slices = 0;  // > 0: a partitioned tensor, whose slices have separate entries
};

constexpr int32_t kBundleVersion = 1;

std::string SerializeBundleHeader(const BundleHeader& header);
std::string SerializeBundleEntry(const BundleEntry& entry);

// Returns nullopt if the bytes are not such a message.
std::optional<BundleHeader> ParseBundleHeader(std::string_view bytes);
std::optional<BundleEntry> ParseBundleEntry(std::string_view bytes);

}  // namespace muster::formats
