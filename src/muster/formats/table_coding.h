// Varints and little-endian numbers in a sorted table and in string tensors.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace muster::formats {

inline void AppendVarint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

// Removes a varint of at most 10 bytes from the front of `*in`; false when there is none.
inline bool TakeVarint(std::string_view* in, uint64_t* value) {
  uint64_t result = 0;
  for (size_t i = 0; i < 10 && i < in->size(); ++i) {
    const auto byte = static_cast<uint8_t>((*in)[i]);
    result |= uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) {
      in->remove_prefix(i + 1);
      *value = result;
      return true;
    }
  }
  return false;
}

template <typename Number>
void AppendLittleEndian(std::string* out, Number value) {
  static_assert(std::endian::native == std::endian::little);
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}
inline void AppendFixed32(std::string* out, uint32_t value) { AppendLittleEndian(out, value); }
inline void AppendFixed64(std::string* out, uint64_t value) { AppendLittleEndian(out, value); }

template <typename Number>
Number GetLittleEndian(const char* in) {
  Number value;
  std::memcpy(&value, in, sizeof value);
  return value;
}
inline uint32_t GetFixed32(const char* in) { return GetLittleEndian<uint32_t>(in); }
inline uint64_t GetFixed64(const char* in) { return GetLittleEndian<uint64_t>(in); }

}  // namespace muster::formats
