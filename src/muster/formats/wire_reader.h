// Protobuf's wire format, read field by field and safe for any bytes (base/byte_reader.h).
// Source: protobuf's "Encoding" document.
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

// After a false return the reader must not be used any more. Copies are independent.
class WireReader : public ByteReader {
 public:
  explicit WireReader(std::string_view message) : ByteReader(message) {}

  // Field number and wire type, see WireTag; field number 0 does not exist.
  bool ReadTag(uint32_t* tag) {
    uint64_t value;
    if (!ReadVarint(&value) || value > UINT32_MAX || value >> 3 == 0) return false;
    *tag = static_cast<uint32_t>(value);
    return true;
  }

  // A length and that many bytes, which are not copied.
  bool ReadBytes(std::string_view* bytes) {
    uint64_t size;
    return ReadVarint(&size) && ByteReader::ReadBytes(size, bytes);
  }

  // Skips the field whose tag was just read; a group with all its contents.
  bool Skip(uint32_t tag) { return SkipNested(tag, 0); }

 private:
  static constexpr int kMaxDepth = 100;  // as protobuf

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
      default:  // kEndGroup without its start, or a type that does not exist
        return false;
    }
  }
};

}  // namespace muster::formats
