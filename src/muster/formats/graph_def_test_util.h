// Reads protobuf messages without their schema, for tests of written messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <protozero/pbf_reader.hpp>

namespace muster::formats {

// Returns all values of a length-delimited field, in order.
inline std::vector<std::string> GetBytes(std::string_view message, int field) {
  std::vector<std::string> values;
  protozero::pbf_reader reader(message.data(), message.size());
  while (reader.next()) {
    if (static_cast<int>(reader.tag()) == field) {
      values.push_back(reader.get_string());
    } else {
      reader.skip();
    }
  }
  return values;
}

// Returns the first value of a length-delimited field; "" if there is none.
inline std::string FirstBytes(std::string_view message, int field) {
  const std::vector<std::string> values = GetBytes(message, field);
  return values.empty() ? "" : values[0];
}

// Returns the last value of a varint field; -12345 if there is none.
inline int64_t GetInt(std::string_view message, int field) {
  int64_t value = -12345;
  protozero::pbf_reader reader(message.data(), message.size());
  while (reader.next()) {
    if (static_cast<int>(reader.tag()) == field) {
      value = reader.get_int64();
    } else {
      reader.skip();
    }
  }
  return value;
}

// Returns the value of a map field's entry; "" if there is none.
inline std::string MapEntry(std::string_view message, int field, std::string_view key) {
  for (const std::string& entry : GetBytes(message, field)) {
    if (FirstBytes(entry, 1) == key) return FirstBytes(entry, 2);
  }
  return "";
}

inline std::vector<std::string> MapKeys(std::string_view message, int field) {
  std::vector<std::string> keys;
  for (const std::string& entry : GetBytes(message, field)) keys.push_back(FirstBytes(entry, 1));
  return keys;
}

}  // namespace muster::formats
