// Reads protobuf's wire format field by field, safely for any bytes (base/byte_reader.h). Source:
// protobuf's "Encoding" document.
#pragma once

#include <cstdint>
#include <string_view>

#include "muster/base/byte_reader.h"

namespace muster::formats {

enum class WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,  // length-delimited
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

constexpr uint32_t WireTag(uint32_t field, WireType type) {
  return field << 3 | static_cast<uint32_t>(type);
}

// After a method has returned false, the reader must not be used any more. Copies are independent.
class WireReader : public ByteReader {
 public:
  explicit WireReader(std::string_view message) : ByteReader(message) {}

  // Reads field number and wire type, see WireTag; field number 0 is invalid.
  bool ReadTag(uint32_t* tag) {
    uint64_t value;
    if (!ReadVarint(&value) || value > UINT32_MAX || value >> 3 == 0) return false;
    *tag = static_cast<uint32_t>(value);
    return true;
  }

  // Reads a length and that many bytes, which are not copied.
  bool ReadBytes(std::string_view* bytes) {
    uint64_t size;
    return ReadVarint(&size) && ByteReader::ReadBytes(size, bytes);
  }

  // Skips the field whose tag was just read; a group with everything in it.
  bool Skip(uint32_t tag) { return SkipNested(tag, 0); }

 private:
  static constexpr int kMaxDepth = 100;  // as in protobuf

  bool SkipNested(uint32_t tag, int depth) {
    switch (static_cast<WireType>(tag & 7)) {
      case WireType::kVarint: {
        uint64_t value;
        return ReadVarint(&value);
      }
      case WireType::kFixed64:
        return ByteReader::Skip(8);
      case WireType::kBytes: {
        std::string_view bytes;
        return ReadBytes(&bytes);
      }
      case WireType::kStartGroup: {
        if (depth >= kMaxDepth) return false;
        const uint32_t end = WireTag(tag >> 3, WireType::kEndGroup);
        for (uint32_t inner; ReadTag(&inner);) {
          if (inner == end) return true;
          if (!SkipNested(inner, depth + 1)) return false;
        }
        return false;
      }
      case WireType::kFixed32:
        return ByteReader::Skip(4);
      default:  // an end of a group that did not begin, or an unknown type
        return false;
    }
  }
};

}  // namespace muster::formats
