// Protobuf's wire format, read field by field and safe for any bytes: nothing is read beyond the
// end, nothing is allocated, and unparsable input gives a false return. Source: protobuf's
// "Encoding" document.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

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

// After a false return the reader must not be used any more. Copies are independent cursors.
class WireReader {
 public:
  explicit WireReader(std::string_view message)
      : next_(message.data()), end_(message.data() + message.size()) {}

  bool done() const { return next_ == end_; }
  const char* position() const { return next_; }

  // As in protobuf, bits of a tenth byte that do not fit in 64 bits are ignored.
  bool ReadVarint(uint64_t* value) {
    if (next_ != end_ && static_cast<uint8_t>(*next_) < 0x80) [[likely]] {
      *value = static_cast<uint8_t>(*next_++);
      return true;
    }
    uint64_t result = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (next_ == end_) return false;
      const auto byte = static_cast<uint8_t>(*next_++);
      result |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) {
        *value = result;
        return true;
      }
    }
    return false;
  }

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
    if (!ReadVarint(&size) || size > static_cast<uint64_t>(end_ - next_)) return false;
    *bytes = {next_, static_cast<size_t>(size)};
    next_ += size;
    return true;
  }

  bool ReadFixed32(uint32_t* value) {
    static_assert(std::endian::native == std::endian::little);
    if (end_ - next_ < 4) return false;
    std::memcpy(value, next_, 4);
    next_ += 4;
    return true;
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
        return Advance(8);
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
        return Advance(4);
      default:  // kEndGroup without its start, or a type that does not exist
        return false;
    }
  }

  bool Advance(size_t size) {
    if (static_cast<size_t>(end_ - next_) < size) return false;
    next_ += size;
    return true;
  }

  const char* next_;
  const char* end_;
};

}  // namespace muster::formats
