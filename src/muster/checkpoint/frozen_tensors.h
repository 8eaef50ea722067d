// FrozenTensors: the bytes that tensors have at one moment, to be read while their owner goes on
// changing them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "muster/base/status.h"
#include "muster/checkpoint/checkpoint.h"

namespace muster::checkpoint {

// Little memory is copied at once. Much is frozen by fork(): the child is a picture of the process
// that shares its pages until one is written to, and does nothing but send the tensors through a
// pipe. That costs the caller the copying of page tables (a few milliseconds a GB where pages are
// large, some 20 where they are small) and, as long as the child lives, the kernel's copy of each
// page at its first change: the memory of what changes meanwhile, at most that of the tensors.
// Where no child can be made (no memory for it, no more processes) all is copied instead.
//
// The child makes system calls only, holds no files but the pipe's, is in a group of its own, and
// ends with the reader, however that ends. Construct and destroy on any thread; Read on one.
class FrozenTensors {
 public:
  static constexpr uint64_t kCopiedBytes = uint64_t{64} << 20;

  // Copies up to `copied_bytes` in all, forks for more. RESOURCE_EXHAUSTED when neither can be.
  static absl::StatusOr<std::unique_ptr<FrozenTensors>> Create(
      std::span<const Tensor> tensors, uint64_t copied_bytes = kCopiedBytes);
  virtual ~FrozenTensors() = default;

  // Fills all of `piece` with the next of the tensors' bytes, which lie in order and back to back.
  virtual absl::Status Read(std::span<char> piece) = 0;
};

}  // namespace muster::checkpoint
