// A ring of bytes in memory that two processes map: one process writes, the other reads.
//
// Positions count all bytes ever written and read; a position modulo the capacity is its place in
// the ring. Each side keeps a private copy of its own position and checks the other's for
// plausibility. Source of the idea: Lamport's queue with the other's index cached (Lee, Bu,
// Chandranmenon, "MCRingBuffer", 2009).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "muster/base/status.h"
#include "muster/net/transport/stream.h"

namespace muster::net::transport {

// In the shared memory: all fields are accessed through atomic_ref, each on its own cache line.
struct RingControl {
  alignas(64) uint64_t written = 0;        // the writer's position
  alignas(64) uint64_t read = 0;           // the reader's
  alignas(64) uint32_t reader_sleeps = 0;  // 1: ring the bell once `written` has grown
  alignas(64) uint32_t writer_sleeps = 0;  // 1: ring the bell once `read` has grown
};

// A power of two in these bounds.
inline constexpr size_t kMinRingBytes = size_t{64} << 10;
inline constexpr size_t kMaxRingBytes = size_t{64} << 20;

// RingWriter and RingReader have one owner thread each. Their calls set `bell` if the other side
// sleeps and must be woken, and never clear it. DATA_LOSS if the other side's position is
// impossible.
class RingWriter {
 public:
  // `control` and `data` must outlive the writer.
  RingWriter(RingControl* control, std::byte* data, size_t capacity)
      : control_(control), data_(data), capacity_(capacity) {}

  // Copies what fits now and publishes it piece by piece, so that the reader can begin; stops early
  // if it finds the reader asleep, so that the bell is rung at once.
  absl::StatusOr<size_t> Write(std::span<const ConstBytes> pieces, bool* bell);
  // Returns true if there is more room than the last Write saw: then do not sleep.
  bool Arm();
  void Disarm();

 private:
  void Publish(bool* bell);

  RingControl* const control_;
  std::byte* const data_;
  const size_t capacity_;
  uint64_t written_ = 0;
  uint64_t published_ = 0;
  uint64_t read_ = 0;  // as last seen
};

class RingReader {
 public:
  RingReader(RingControl* control, const std::byte* data, size_t capacity)
      : control_(control), data_(data), capacity_(capacity) {}

  // Returns bytes up to the end of the memory at most.
  absl::StatusOr<ConstBytes> Peek();
  // The room is returned to the writer an eighth of the ring at a time, or with Arm.
  void Consume(size_t n, bool* bell);
  // Returns true if there is more to read than the last Peek saw: then do not sleep.
  bool Arm(bool* bell);
  void Disarm();

 private:
  void Publish(bool* bell);

  RingControl* const control_;
  const std::byte* const data_;
  const size_t capacity_;
  uint64_t read_ = 0;
  uint64_t published_ = 0;
  uint64_t written_ = 0;  // as last seen
};

}  // namespace muster::net::transport
