// The layout of tensors in the memory shared with a host, computed from type and shape.
#pragma once

#include <cstdint>
#include <span>

#include "muster/engine/tensorflow/host/message.h"
#include "muster/engine/tensorflow/host/shared_segment.h"
#include "muster/formats/bundle.h"

namespace muster::engine::tensorflow {

// Returns a place with type, shape and number of bytes, whose offset is not set yet. For types with
// plain elements; the shape has at most TensorPlace::kMaxRank sizes, none of them negative.
inline host::TensorPlace MakePlace(formats::DataType type, std::span<const int64_t> shape) {
  host::TensorPlace place{.type = static_cast<uint64_t>(type), .rank = shape.size()};
  uint64_t elements = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    place.dims[i] = static_cast<uint64_t>(shape[i]);
    elements *= place.dims[i];
  }
  place.bytes = elements * formats::DataTypeBytes(type);
  return place;
}

// Returns the space that a tensor of that many bytes takes, with alignment.
inline uint64_t Aligned(uint64_t bytes) {
  return (bytes + host::kAlignment - 1) / host::kAlignment * host::kAlignment;
}

}  // namespace muster::engine::tensorflow
