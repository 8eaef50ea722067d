// A Stream that fails on purpose: for tests of the layers above it.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "muster/base/status.h"
#include "muster/net/transport/stream.h"

namespace muster::net::transport {

inline constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

// Positions count the bytes of the stream, separately for those written and those read.
struct FaultOptions {
  uint64_t seed = 0;
  double short_io = 0;  // probability that a call moves or shows only 1 to 16 bytes
  double delay = 0;     // probability that nothing moves for delay_micros after a call
  int delay_micros = 500;
  uint64_t stall_at = kNever;      // written: from here nothing moves, and no hang-up is seen
  uint64_t half_open_at = kNever;  // written: from here writes are dropped, and nothing arrives
  uint64_t cut_at = kNever;        // written: here the connection is closed
  uint64_t flip_at = kNever;       // read: the lowest bit of this byte is flipped
};

// RESOURCE_EXHAUSTED when no descriptors are left.
absl::StatusOr<std::unique_ptr<Stream>> NewFaultStream(std::unique_ptr<Stream> stream,
                                                       const FaultOptions& options);

}  // namespace muster::net::transport
