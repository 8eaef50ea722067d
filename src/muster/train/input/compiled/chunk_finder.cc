#include "muster/train/input/compiled/chunk_finder.h"

#include <algorithm>

namespace muster::train {
namespace {

// So many that most lie within one chunk, where chunks are about equally long.
constexpr uint64_t kBucketsPerChunk = 4;

}  // namespace

ChunkFinder::ChunkFinder(const std::vector<data::ChunkInfo>& chunks) {
  for (const data::ChunkInfo& chunk : chunks) first_numbers_.push_back(chunk.first_number);
  const uint64_t range = first_numbers_.back() - first_numbers_.front();
  while (range >> shift_ > kBucketsPerChunk * chunks.size()) ++shift_;
  uint32_t chunk = 0;
  for (uint64_t bucket = 0; bucket <= range >> shift_; ++bucket) {
    const uint64_t number = first_numbers_.front() + (bucket << shift_);
    while (chunk + 1 < chunks.size() && first_numbers_[chunk + 1] <= number) ++chunk;
    buckets_.push_back(chunk);
  }
  buckets_.push_back(static_cast<uint32_t>(chunks.size() - 1));
}

size_t ChunkFinder::Find(uint64_t number) const {
  const size_t bucket =
      std::min<size_t>((number - first_numbers_.front()) >> shift_, buckets_.size() - 2);
  const uint64_t* const begin = first_numbers_.data();
  const uint64_t* const after =
      std::upper_bound(begin + buckets_[bucket] + 1, begin + buckets_[bucket + 1] + 1, number);
  return static_cast<size_t>(after - begin) - 1;
}

}  // namespace muster::train
