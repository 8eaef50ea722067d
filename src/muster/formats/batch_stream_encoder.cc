#include <zlib.h>

#include <bit>
#include <cstring>

#include "muster/formats/batch_stream.h"

namespace muster::formats {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kStart{"MUSTRBAT\x01\0\0\0", 12};

template <typename T>
void Append(T value, std::string* out) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out->append(bytes, sizeof value);
}

uint32_t Crc(std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

template <typename T>
void AppendAll(const std::vector<T>& values, std::string* out) {
  out->append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

void AppendColumn(const Field& field, const Column& column, std::string* out) {
  if (field.list) {
    for (size_t row = 1; row < column.offsets.size(); ++row) {
      Append(column.offsets[row] - column.offsets[row - 1], out);
    }
  }
  switch (field.type) {
    case ValueType::kInt:
      return AppendAll(column.ints, out);
    case ValueType::kFloat:
      return AppendAll(column.floats, out);
    case ValueType::kString:
      for (const std::string_view text : column.strings) {
        Append(static_cast<uint32_t>(text.size()), out);
      }
      for (const std::string_view text : column.strings) out->append(text);
      return;
  }
}

void AppendFramePrefix(const FramePrefix& frame, std::string* out) {
  Append(frame.rows, out);
  Append(frame.crc, out);
  Append(frame.bytes, out);
}

}  // namespace

std::string BatchStreamEncoder::Start() const {
  std::string header;
  Append(static_cast<uint32_t>(schema_.fields.size()), &header);
  for (const Field& field : schema_.fields) {
    Append(static_cast<uint8_t>(field.type), &header);
    Append(static_cast<uint8_t>(field.list), &header);
    Append(static_cast<uint16_t>(field.name.size()), &header);
    header += field.name;
  }
  Append(Crc(header), &header);
  std::string start(kStart);
  Append(static_cast<uint32_t>(header.size()), &start);
  return start + header;
}

absl::Status BatchStreamEncoder::Encode(const Columns& columns, std::string* stream) const {
  const size_t begin = stream->size(), payload = begin + kFramePrefixBytes;
  stream->resize(payload);
  for (size_t i = 0; i < schema_.fields.size(); ++i) {
    AppendColumn(schema_.fields[i], columns.column(static_cast<int>(i)), stream);
  }
  const uint64_t bytes = stream->size() - payload;
  if (bytes > kMaxFrameBytes) {
    stream->resize(begin);
    return absl::InvalidArgumentError(StrCat("a batch of ", columns.rows(), " rows needs ", bytes,
                                             " bytes; a stream's have at most ", kMaxFrameBytes));
  }
  std::string prefix;
  AppendFramePrefix({.rows = static_cast<uint32_t>(columns.rows()),
                     .crc = Crc(std::string_view(*stream).substr(payload)),
                     .bytes = bytes},
                    &prefix);
  stream->replace(begin, kFramePrefixBytes, prefix);
  return absl::OkStatus();
}

std::string BatchStreamEncoder::End() {
  std::string end;
  AppendFramePrefix({}, &end);
  return end;
}

}  // namespace muster::formats
