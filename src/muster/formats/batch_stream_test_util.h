// Builds the bytes of a batch stream, for tests.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "muster/formats/schema.h"

namespace muster::formats {

template <typename T>
void AppendRaw(T value, std::string* out) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out->append(bytes, sizeof(T));
}

inline uint32_t TestCrc(std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

struct TestStreamColumn {
  std::string name;
  ValueType type = ValueType::kInt;
  bool list = false;
};

inline std::string TestStreamHeader(const std::vector<TestStreamColumn>& columns) {
  std::string header;
  AppendRaw(static_cast<uint32_t>(columns.size()), &header);
  for (const TestStreamColumn& column : columns) {
    AppendRaw(static_cast<uint8_t>(column.type), &header);
    AppendRaw(static_cast<uint8_t>(column.list), &header);
    AppendRaw(static_cast<uint16_t>(column.name.size()), &header);
    header += column.name;
  }
  AppendRaw(TestCrc(header), &header);
  return header;
}

inline std::string TestStreamStart(const std::vector<TestStreamColumn>& columns) {
  const std::string header = TestStreamHeader(columns);
  std::string start = "MUSTRBAT";
  AppendRaw(uint32_t{1}, &start);
  AppendRaw(static_cast<uint32_t>(header.size()), &start);
  return start + header;
}

inline std::string TestFrame(uint32_t rows, std::string_view payload) {
  std::string frame;
  AppendRaw(rows, &frame);
  AppendRaw(rows == 0 ? uint32_t{0} : TestCrc(payload), &frame);
  AppendRaw(uint64_t{payload.size()}, &frame);
  return frame.append(payload);
}

template <typename T>
std::string TestNumbers(const std::vector<T>& values) {
  std::string out;
  for (const T value : values) AppendRaw(value, &out);
  return out;
}

inline std::string TestStrings(const std::vector<std::string>& values) {
  std::string out;
  for (const std::string& value : values) AppendRaw(static_cast<uint32_t>(value.size()), &out);
  for (const std::string& value : values) out += value;
  return out;
}

}  // namespace muster::formats
