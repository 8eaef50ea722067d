// One frame: a header of 48 bytes, payload, zeros to a multiple of 8 bytes, a trailer of 8 bytes.
// docs/formats/frames.md specifies the format; this file only encodes and decodes its bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "muster/base/status.h"
#include "muster/net/transport/stream.h"

namespace muster::net::transport {

inline constexpr size_t kFrameHeaderBytes = 48;
inline constexpr size_t kFrameTrailerBytes = 8;
// A larger message is sent as several frames, all but the last with this much payload.
inline constexpr size_t kMaxFramePayload = size_t{256} << 10;

// Types below it belong to the caller.
inline constexpr uint16_t kFirstReservedType = 0xff00;
// A status: u32 code, then the message. Allowed between any two frames, also within another
// message.
inline constexpr uint16_t kFailureType = 0xffff;
inline constexpr size_t kMaxFailureBytes = 4096;
// Empty: the first frame of a later generation on a connection that is used again
// (Channel::Renew). Its sequence is 0.
inline constexpr uint16_t kRenewalType = 0xfffe;

enum FrameFlags : uint16_t {
  kFrameMore = 1,      // the message continues in the next frame
  kFrameChecksum = 2,  // the trailer has the payload's checksum
};

struct FrameHeader {
  uint16_t type = 0;
  uint16_t flags = 0;
  uint64_t generation = 0;
  uint64_t sequence = 0;       // 0, 1, 2... per connection and direction
  uint64_t message_bytes = 0;  // of the whole message, the same in all its frames
  uint32_t payload_bytes = 0;  // of this frame, without padding
};

using FrameHeaderBytes = std::array<std::byte, kFrameHeaderBytes>;

FrameHeaderBytes EncodeFrameHeader(const FrameHeader& header);

// DATA_LOSS says which field is wrong: magic, checksum, unknown flags, a payload larger than the
// limit or than its message, an empty or odd piece of a longer message.
absl::StatusOr<FrameHeader> DecodeFrameHeader(const FrameHeaderBytes& bytes);

// What follows the payload.
struct FrameTrailer {
  uint32_t crc = 0;  // CRC-32C of the payload, 0 when not flagged
  // The sender gave up within this frame and filled it with zeros: a failure follows.
  bool given_up = false;
};

inline constexpr size_t kMaxFrameTailBytes = 7 + kFrameTrailerBytes;
using FrameTailBytes = std::array<std::byte, kMaxFrameTailBytes + 1>;

// The size of padding and trailer together.
inline size_t FrameTailSize(size_t payload_bytes) {
  return -payload_bytes % 8 + kFrameTrailerBytes;
}

// Only the first FrameTailSize(payload_bytes) bytes of the result or argument are used.
FrameTailBytes EncodeFrameTail(size_t payload_bytes, const FrameTrailer& trailer);
absl::StatusOr<FrameTrailer> DecodeFrameTail(size_t payload_bytes, const FrameTailBytes& bytes);

uint32_t ExtendChecksum(uint32_t crc, ConstBytes bytes);

}  // namespace muster::net::transport
