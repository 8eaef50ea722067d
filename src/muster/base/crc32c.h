// CRC-32C (Castagnoli, RFC 3720 appendix B.4), with the SSE 4.2 instruction where the machine has
// it, and TensorFlow's masked form (tensorflow/core/lib/hash/crc32c.h) that its files store.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster {

// The CRC of `bytes` appended to data whose CRC is `crc`; start with 0.
uint32_t ExtendCrc32c(uint32_t crc, std::string_view bytes);

inline uint32_t Crc32c(std::string_view bytes) { return ExtendCrc32c(0, bytes); }

inline uint32_t MaskCrc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

inline uint32_t MaskedCrc32c(std::string_view bytes) { return MaskCrc(Crc32c(bytes)); }

}  // namespace muster
