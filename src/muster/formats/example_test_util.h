// Writes protobuf's wire format by hand, for tests of unusual forms.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "muster/formats/schema.h"
#include "muster/formats/wire_reader.h"

namespace muster::formats {

inline std::string WireVarint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes += static_cast<char>(value);
}

inline std::string WireBytes(uint32_t field, std::string_view content) {
  return WireVarint(WireTag(field, WireType::kBytes)) + WireVarint(content.size()) +
         std::string(content);
}

inline std::string WireFloat(float value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  return std::string(bytes, sizeof value);
}

// Make features with packed values in the usual form; the arguments are the contents of the list.
inline std::string BytesFeature(std::string_view value) {
  return WireBytes(1, WireBytes(1, value));
}
inline std::string FloatFeature(float value) {
  return WireBytes(2, WireBytes(1, WireFloat(value)));
}
inline std::string IntFeature(int64_t value) {
  return WireBytes(3, WireBytes(1, WireVarint(static_cast<uint64_t>(value))));
}

// Make a map entry with its tag, and an Example of such entries.
inline std::string WireEntry(std::string_view name, std::string_view feature) {
  return WireBytes(1, WireBytes(1, name) + WireBytes(2, feature));
}
inline std::string WireExample(std::string_view entries) { return WireBytes(1, entries); }

inline Field TypedField(std::string_view name, ValueType type, bool list = false) {
  Field field;
  field.name = name;
  field.type = type;
  field.list = list;
  return field;
}

}  // namespace muster::formats
