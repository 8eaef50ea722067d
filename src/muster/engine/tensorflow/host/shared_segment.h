// Memory that the owner of a TensorFlow host process and the host both map: a memfd that grows and
// never shrinks, at an address that stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "muster/base/status.h"
#include "muster/process/descriptor.h"

namespace muster::engine::tensorflow::host {

// Everything that is handed over begins at a multiple of this: what TensorFlow reads without a
// copy.
inline constexpr uint64_t kAlignment = 64;
// A segment grows in steps of so much: what the creator has allocated first lies in the first.
inline constexpr uint64_t kLeastSegmentBytes = uint64_t{1} << 20;
// Of address space, reserved at once; a segment cannot be larger.
inline constexpr uint64_t kMaxSegmentBytes = uint64_t{64} << 30;

// One owner thread in each process.
class SharedSegment {
 public:
  // A new one, empty.
  static absl::StatusOr<std::unique_ptr<SharedSegment>> Create();
  // The other side's: DATA_LOSS for a descriptor whose memory could shrink under a reader.
  static absl::StatusOr<std::unique_ptr<SharedSegment>> Attach(process::Descriptor memory);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  int fd() const { return memory_.get(); }
  uint64_t bytes() const { return bytes_; }
  std::byte* at(uint64_t offset) const { return base_ + offset; }
  // Whether [offset, offset + size) lies in it.
  bool Has(uint64_t offset, uint64_t size) const {
    return offset <= bytes_ && size <= bytes_ - offset;
  }

  // The creator's: `size` aligned bytes at the end, whose pages are there: RESOURCE_EXHAUSTED when
  // they cannot be had. Returns their offset. Nothing is ever given back.
  absl::StatusOr<uint64_t> Allocate(uint64_t size);
  // The other side's: maps what the creator says there is. DATA_LOSS when there is less.
  absl::Status MapTo(uint64_t bytes);

 private:
  SharedSegment(process::Descriptor memory, std::byte* base)
      : memory_(std::move(memory)), base_(base) {}
  absl::Status Map(uint64_t bytes);

  process::Descriptor memory_;
  std::byte* const base_;
  uint64_t bytes_ = 0;  // mapped
  uint64_t used_ = 0;   // the creator's
};

// A part of the creator's segment that is made anew, twice as large at least, when it is too small.
class SharedBlock {
 public:
  // What was in it is lost when it moves. Returns the offset.
  absl::StatusOr<uint64_t> Reserve(SharedSegment& segment, uint64_t size);
  uint64_t offset() const { return offset_; }
  uint64_t capacity() const { return capacity_; }

 private:
  uint64_t offset_ = 0, capacity_ = 0;
};

}  // namespace muster::engine::tensorflow::host
