// Memory that the owner of a TensorFlow host process and the host both map: a memfd that grows and
// never shrinks, at a fixed address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "muster/base/status.h"
#include "muster/process/descriptor.h"

namespace muster::engine::tensorflow::host {

// Everything that is handed over has this alignment, so that TensorFlow can read it without a copy.
inline constexpr uint64_t kAlignment = 64;
// A segment grows in steps of this size; the creator's first allocations lie in the first step.
inline constexpr uint64_t kLeastSegmentBytes = uint64_t{1} << 20;
// The address space that is reserved at once: a segment cannot become larger.
inline constexpr uint64_t kMaxSegmentBytes = uint64_t{64} << 30;

// One owner thread in each process.
class SharedSegment {
 public:
  // Creates an empty segment.
  static absl::StatusOr<std::unique_ptr<SharedSegment>> Create();
  // Attaches the other side: DATA_LOSS for a descriptor whose memory could shrink under a reader.
  static absl::StatusOr<std::unique_ptr<SharedSegment>> Attach(process::Descriptor memory);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  int fd() const { return memory_.get(); }
  uint64_t bytes() const { return bytes_; }
  std::byte* at(uint64_t offset) const { return base_ + offset; }
  // Whether [offset, offset + size) lies in the segment.
  bool Has(uint64_t offset, uint64_t size) const {
    return offset <= bytes_ && size <= bytes_ - offset;
  }

  // For the creator: allocates `size` aligned bytes with their pages at the end, and returns their
  // offset. RESOURCE_EXHAUSTED if there are no pages. Nothing is ever freed.
  absl::StatusOr<uint64_t> Allocate(uint64_t size);
  // For the other side: maps as many bytes as the creator announces. DATA_LOSS if there are fewer.
  absl::Status MapTo(uint64_t bytes);

 private:
  SharedSegment(process::Descriptor memory, std::byte* base)
      : memory_(std::move(memory)), base_(base) {}
  absl::Status Map(uint64_t bytes);

  process::Descriptor memory_;
  std::byte* const base_;
  uint64_t bytes_ = 0;  // the number of mapped bytes
  uint64_t used_ = 0;   // the number of bytes that the creator has allocated
};

// A part of the creator's segment. If it is too small, it is replaced by one at least twice as
// large.
class SharedBlock {
 public:
  // Returns the block's offset. The contents are lost when the block moves.
  absl::StatusOr<uint64_t> Reserve(SharedSegment& segment, uint64_t size);
  uint64_t offset() const { return offset_; }
  uint64_t capacity() const { return capacity_; }

 private:
  uint64_t offset_ = 0, capacity_ = 0;
};

}  // namespace muster::engine::tensorflow::host
