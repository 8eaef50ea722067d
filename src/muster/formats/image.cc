#include "muster/formats/image.h"

#include <zlib.h>

#include "muster/base/strings.h"

namespace muster::formats {
namespace {

constexpr std::string_view kPngSignature = "\x89PNG\r\n\x1a\n";
constexpr std::string_view kJpegSignature = "\xff\xd8";

uint32_t BigEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

absl::Status Bad(std::string_view kind, std::string_view why) {
  return absl::InvalidArgumentError(StrCat("a broken ", kind, " file: ", why));
}

// https://www.w3.org/TR/png-3/#5Chunk-layout
absl::StatusOr<ImageSize> CheckPng(std::string_view bytes) {
  constexpr size_t kHead = 8, kChecksum = 4, kIhdrBytes = 13;
  const auto cut = [&] { return Bad("PNG", StrCat("it is cut at byte ", bytes.size())); };
  ImageSize size;
  bool has_pixels = false;
  size_t at = kPngSignature.size();
  for (bool first = true;; first = false) {
    if (bytes.size() - at < kHead + kChecksum) return cut();
    const size_t length = BigEndian(bytes.substr(at, 4));
    const std::string_view type = bytes.substr(at + 4, 4);
    if (length > bytes.size() - at - kHead - kChecksum) return cut();
    const std::string_view content = bytes.substr(at + 4, 4 + length);  // including its type
    const bool critical = (type[0] & 0x20) == 0;
    if (critical && crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size()) !=
                        BigEndian(bytes.substr(at + kHead + length, kChecksum))) {
      return Bad("PNG", StrCat("the checksum of its chunk at byte ", at, " is wrong"));
    }
    if (first != (type == "IHDR") || (first && length != kIhdrBytes)) {
      return Bad("PNG", "it does not begin with its header");
    }
    if (first) size = {BigEndian(content.substr(8, 4)), BigEndian(content.substr(4, 4))};
    has_pixels = has_pixels || type == "IDAT";
    if (type == "IEND") break;
    at += kHead + length + kChecksum;
  }
  if (!has_pixels) return Bad("PNG", "it has no pixels");
  return size;
}

// See ISO/IEC 10918-1, annex B. Bytes between markers are skipped, including the coded pixels.
absl::StatusOr<ImageSize> CheckJpeg(std::string_view bytes) {
  constexpr uint8_t kFirstRestart = 0xd0, kStart = 0xd8, kEnd = 0xd9, kScan = 0xda;
  const auto cut = [&] { return Bad("JPEG", StrCat("it is cut at byte ", bytes.size())); };
  ImageSize size;
  bool has_size = false, has_pixels = false;
  for (size_t at = kJpegSignature.size();;) {
    at = bytes.find('\xff', at);
    if (at == bytes.npos || at + 1 >= bytes.size()) return cut();
    const auto marker = static_cast<uint8_t>(bytes[++at]);
    if (marker == 0xff) continue;  // a fill byte
    ++at;
    // A byte 0xff of the pixels, or a marker without a segment.
    if (marker <= 0x01 || (marker >= kFirstRestart && marker <= kStart)) continue;
    if (marker == kEnd) break;
    if (bytes.size() - at < 2) return cut();
    const size_t length = BigEndian(bytes.substr(at, 2));  // including these two bytes
    if (length > bytes.size() - at) return cut();
    const bool is_frame =
        marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (length < (is_frame ? 8 : 2)) return Bad("JPEG", StrCat("a segment of ", length, " bytes"));
    if (is_frame) {
      size = {BigEndian(bytes.substr(at + 3, 2)), BigEndian(bytes.substr(at + 5, 2))};
      has_size = true;
    }
    has_pixels = has_pixels || marker == kScan;
    at += length;
  }
  if (!has_size || !has_pixels) return Bad("JPEG", "it has no pixels");
  return size;
}

}  // namespace

absl::StatusOr<ImageSize> CheckImage(std::string_view bytes) {
  if (bytes.starts_with(kPngSignature)) return CheckPng(bytes);
  if (bytes.starts_with(kJpegSignature)) return CheckJpeg(bytes);
  return absl::InvalidArgumentError(bytes.empty() ? "no bytes" : "neither a PNG nor a JPEG file");
}

}  // namespace muster::formats
