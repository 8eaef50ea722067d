// ChunkFinder: which of the chunks of a source has the record of a number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "muster/data/source.h"

namespace muster::train {

// Thread-safe once made.
class ChunkFinder {
 public:
  // `chunks` are not empty, and in the order of their numbers.
  explicit ChunkFinder(const std::vector<data::ChunkInfo>& chunks);

  // The last chunk that begins at `number` or before it. `number` is at least that of the first
  // record.
  size_t Find(uint64_t number) const;

 private:
  std::vector<uint64_t> first_numbers_;  // by chunk
  int shift_ = 0;
  // Numbers that agree in what is above `shift_` bits, counted from the first number, make a
  // bucket. By bucket, and one more: the chunk of its first number. The last one is of all that
  // comes after.
  std::vector<uint32_t> buckets_;
};

}  // namespace muster::train
