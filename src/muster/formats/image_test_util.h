// Makes image files for tests, as small as the check of their structure accepts.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::formats {

inline std::string BigEndianBytes(uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
  return text;
}

inline std::string PngChunk(std::string_view type, std::string_view content) {
  const std::string body = std::string(type) + std::string(content);
  const auto checksum =
      static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size()));
  return BigEndianBytes(static_cast<uint32_t>(content.size()), 4) + body +
         BigEndianBytes(checksum, 4);
}

// Makes a PNG whose pixels a decoder would refuse.
inline std::string TestPng(uint32_t height, uint32_t width) {
  return "\x89PNG\r\n\x1a\n" +
         PngChunk("IHDR", BigEndianBytes(width, 4) + BigEndianBytes(height, 4) +
                              std::string("\x08\x00\x00\x00\x00", 5)) +
         PngChunk("tEXt", "Comment") + PngChunk("IDAT", "pixels") + PngChunk("IEND", "");
}

inline std::string JpegSegment(uint8_t marker, std::string_view content) {
  return "\xff" + std::string(1, static_cast<char>(marker)) +
         BigEndianBytes(static_cast<uint32_t>(content.size() + 2), 2) + std::string(content);
}

// Makes such a JPEG, with an end-of-image marker inside a comment, and 0xff among its pixels.
inline std::string TestJpeg(uint32_t height, uint32_t width) {
  return "\xff\xd8" + JpegSegment(0xfe, "\xff\xd9") +
         JpegSegment(0xc2, "\x08" + BigEndianBytes(height, 2) + BigEndianBytes(width, 2) + "\x01") +
         JpegSegment(0xda, "scan") + std::string("pixels\xff\x00more\xff\xd0more\xff", 19) +
         "\xff\xd9";
}

}  // namespace muster::formats
