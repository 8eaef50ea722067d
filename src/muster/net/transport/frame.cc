#include "muster/net/transport/frame.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_format.h"

#include "muster/base/crc32c.h"

namespace muster::net::transport {
namespace {

static_assert(std::endian::native == std::endian::little, "fields are copied as they lie");

constexpr uint32_t kFrameMagic = 0x3146554d;  // "MUF1"
constexpr uint16_t kKnownFlags = kFrameMore | kFrameChecksum;

// The bytes of a header, as docs/formats/frames.md describes them.
struct Wire {
  uint32_t magic = 0;
  uint16_t type = 0;
  uint16_t flags = 0;
  uint64_t generation = 0;
  uint64_t sequence = 0;
  uint64_t message_bytes = 0;
  uint32_t payload_bytes = 0;
  uint32_t zero = 0;
  uint32_t zero_too = 0;
  uint32_t crc = 0;
};
static_assert(sizeof(Wire) == kFrameHeaderBytes);

uint32_t HeaderChecksum(const Wire& wire) {
  return Crc32c({reinterpret_cast<const char*>(&wire), offsetof(Wire, crc)});
}

absl::Status CheckFields(const Wire& wire) {
  if ((wire.flags & ~kKnownFlags) != 0 || wire.zero != 0 || wire.zero_too != 0) {
    return absl::DataLossError(
        absl::StrFormat("flags 0x%04x: this version knows no such frame", wire.flags));
  }
  if (wire.payload_bytes > kMaxFramePayload || wire.payload_bytes > wire.message_bytes) {
    return absl::DataLossError(
        absl::StrFormat("%u bytes of a message of %u: a frame has at most %u, and no more than its "
                        "message",
                        wire.payload_bytes, wire.message_bytes, kMaxFramePayload));
  }
  const bool more = (wire.flags & kFrameMore) != 0;
  if (more && (wire.payload_bytes == 0 || wire.payload_bytes % 8 != 0)) {
    return absl::DataLossError(absl::StrFormat(
        "%u bytes in a frame that another follows: must be a multiple of 8", wire.payload_bytes));
  }
  if (wire.type == kFailureType &&
      (more || wire.payload_bytes != wire.message_bytes || wire.payload_bytes > kMaxFailureBytes)) {
    return absl::DataLossError(absl::StrFormat("a failure of %u bytes: is one frame of at most %u",
                                               wire.message_bytes, kMaxFailureBytes));
  }
  return absl::OkStatus();
}

}  // namespace

FrameHeaderBytes EncodeFrameHeader(const FrameHeader& header) {
  Wire wire = {.magic = kFrameMagic,
               .type = header.type,
               .flags = header.flags,
               .generation = header.generation,
               .sequence = header.sequence,
               .message_bytes = header.message_bytes,
               .payload_bytes = header.payload_bytes};
  wire.crc = HeaderChecksum(wire);
  return std::bit_cast<FrameHeaderBytes>(wire);
}

absl::StatusOr<FrameHeader> DecodeFrameHeader(const FrameHeaderBytes& bytes) {
  const Wire wire = std::bit_cast<Wire>(bytes);
  if (wire.magic != kFrameMagic) {
    return absl::DataLossError(absl::StrFormat(
        "begins with 0x%08x and not with MUF1: no frame of this version", wire.magic));
  }
  if (const uint32_t crc = HeaderChecksum(wire); crc != wire.crc) {
    return absl::DataLossError(absl::StrFormat(
        "the header's checksum is 0x%08x and its bytes have 0x%08x", wire.crc, crc));
  }
  MUSTER_RETURN_IF_ERROR(CheckFields(wire));
  return FrameHeader{.type = wire.type,
                     .flags = wire.flags,
                     .generation = wire.generation,
                     .sequence = wire.sequence,
                     .message_bytes = wire.message_bytes,
                     .payload_bytes = wire.payload_bytes};
}

FrameTailBytes EncodeFrameTail(size_t payload_bytes, const FrameTrailer& trailer) {
  FrameTailBytes bytes = {};
  std::byte* const end = bytes.data() + FrameTailSize(payload_bytes);
  const uint32_t given_up = trailer.given_up ? 1 : 0;
  std::memcpy(end - 8, &trailer.crc, 4);
  std::memcpy(end - 4, &given_up, 4);
  return bytes;
}

absl::StatusOr<FrameTrailer> DecodeFrameTail(size_t payload_bytes, const FrameTailBytes& bytes) {
  const std::byte* const trailer = bytes.data() + FrameTailSize(payload_bytes) - kFrameTrailerBytes;
  uint32_t crc, given_up;
  std::memcpy(&crc, trailer, 4);
  std::memcpy(&given_up, trailer + 4, 4);
  const bool padded =
      std::all_of(bytes.data(), trailer, [](std::byte b) { return b == std::byte{}; });
  if (!padded || given_up > 1) {
    return absl::DataLossError("what follows the payload is no padding and trailer");
  }
  return FrameTrailer{.crc = crc, .given_up = given_up == 1};
}

uint32_t ExtendChecksum(uint32_t crc, ConstBytes bytes) {
  return ExtendCrc32c(crc, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace muster::net::transport
