// FrozenTensors: the bytes that tensors have at one moment, for a thread that writes them to disk
// while their owner keeps changing them. Freezing copies nothing: the owner announces what it is
// about to change, and the part of it that the writer has not read yet is copied first. Rows of a
// table are copied one by one, so that the cost of a step depends on the rows that it touches.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "muster/base/mutex.h"
#include "muster/checkpoint/checkpoint.h"

namespace muster::checkpoint {

// One owner thread, and between Freeze and Thaw one writer thread. Memory: 4 bytes per row (per
// block of 256 bytes if rows are not 64 to 4096 bytes) and, from the first save on, the largest
// amount copied in any save, which is at most the size of the tensors.
class FrozenTensors {
 public:
  // Owner. Allocates the memory that Freeze will need, so that the first Freeze is as fast as later
  // ones.
  void Prepare(std::span<const Tensor> tensors);

  // Owner, while thawed. From now on Read gives the present values of the tensors; their memory
  // must stay until Thaw.
  void Freeze(std::span<const Tensor> tensors);

  // Owner, before it changes all tensors of a variable (Tensor::variable), or only these rows of
  // them (rows: the first dimension; any order). Cheap while nothing is frozen.
  void BeforeAll(int variable) {
    if (frozen_.load(std::memory_order_acquire)) KeepAll(variable);
  }
  void BeforeRows(int variable, std::span<const int32_t> rows) {
    if (frozen_.load(std::memory_order_acquire)) KeepRows(variable, rows);
  }

  // Writer. Fills `piece` with the next of the tensors' bytes, in order and back to back; that many
  // must be left.
  void Read(std::span<char> piece);

  // Writer, when it has read everything or gives up.
  void Thaw();

 private:
  // A tensor in blocks of equal size; the last one may be shorter.
  struct Part {
    Tensor tensor;
    uint64_t block_bytes = 0;
    std::vector<uint32_t> kept;  // the place of a block's copy, or 0
    uint64_t read = 0;           // bytes that the writer has read
  };

  void Layout(std::span<const Tensor> tensors) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepAll(int variable);
  void KeepRows(int variable, std::span<const int32_t> rows);
  void Keep(Part& part, uint64_t begin, uint64_t end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  char* GetPlace(uint32_t place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t ReadSome(Part& part, std::span<char> piece) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<bool> frozen_{false};
  Mutex mutex_;
  std::vector<Part> parts_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::vector<size_t>> parts_of_ ABSL_GUARDED_BY(mutex_);   // of each variable
  size_t next_part_ ABSL_GUARDED_BY(mutex_) = 0;                        // of the writer
  std::vector<std::unique_ptr<char[]>> aside_ ABSL_GUARDED_BY(mutex_);  // chunks of copied blocks
  uint64_t aside_bytes_ ABSL_GUARDED_BY(mutex_) = 0;                    // used, from the first on
};

}  // namespace muster::checkpoint
