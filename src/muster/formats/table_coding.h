// Writes varints and little-endian numbers of a sorted table and of string tensors, and reads them
// at places that are known to be inside (base/byte_reader.h reads where that must be checked).
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
