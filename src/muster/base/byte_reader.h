// ByteReader: takes numbers and bytes from the front of memory that a file or a peer has filled.
//
// Nothing is read beyond the end and nothing is allocated. Each Read...() returns whether all that
// it needs is there, and leaves *value as it is otherwise. After a false return nothing is left,
// and every further read returns false too, so that a caller may look at ok() once at the end.
//
// Numbers are little-endian at any address. Views point into the memory, which must outlive them.
// Copies are independent. One owner thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace muster {

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes)
      : next_(bytes.data() == nullptr ? "" : bytes.data()), end_(next_ + bytes.size()) {}
  explicit ByteReader(std::span<const std::byte> bytes)
      : ByteReader(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())) {}

  bool ok() const { return next_ != nullptr; }
  // Whether every byte was read, by reads that all returned true.
  bool done() const { return next_ == end_ && ok(); }
  size_t left() const { return static_cast<size_t>(end_ - next_); }
  const char* position() const { return next_; }

  template <class Number>
  requires(std::is_arithmetic_v<Number> || std::is_enum_v<Number>) bool Read(Number* value) {
    static_assert(std::endian::native == std::endian::little);
    if (left() < sizeof *value) return Fail();
    std::memcpy(value, next_, sizeof *value);
    next_ += sizeof *value;
    return true;
  }
  // Protobuf's varint. As in protobuf, bits of a tenth byte that do not fit in 64 are ignored.
  bool ReadVarint(uint64_t* value) {
    if (next_ != end_ && static_cast<uint8_t>(*next_) < 0x80) [[likely]] {
      *value = static_cast<uint8_t>(*next_++);
      return true;
    }
    uint64_t result = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (next_ == end_) return Fail();
      const auto byte = static_cast<uint8_t>(*next_++);
      result |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) {
        *value = result;
        return true;
      }
    }
    return Fail();
  }
  bool ReadBytes(uint64_t size, std::string_view* bytes) {
    if (size > left() || !ok()) return Fail();
    *bytes = {next_, static_cast<size_t>(size)};
    next_ += size;
    return true;
  }
  // `count` values as they lie in the memory, which must be aligned for them.
  template <class Value>
  requires(std::is_trivially_copyable_v<Value>) bool ReadArray(uint64_t count,
                                                               std::span<const Value>* values) {
    if (!Fits(count, sizeof(Value))) return false;
    *values = {reinterpret_cast<const Value*>(next_), static_cast<size_t>(count)};
    next_ += count * sizeof(Value);
    return true;
  }
  bool Skip(uint64_t size) {
    std::string_view skipped;
    return ReadBytes(size, &skipped);
  }
  // Reads nothing. Whether `count` elements of `each` (> 0) or more bytes can still come: to be
  // asked before memory for them is allocated.
  bool Fits(uint64_t count, size_t each) { return (count <= left() / each && ok()) || Fail(); }

 private:
  bool Fail() {
    next_ = end_ = nullptr;
    return false;
  }

  const char* next_;
  const char* end_;
};

}  // namespace muster
