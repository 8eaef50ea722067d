#include "muster/train/input/compiled/chunk_finder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace muster::train {
namespace {

// Chunks of so many records, the first of which has the number `first`; a negative one is a gap.
void ExpectFound(uint64_t first, const std::vector<int64_t>& sizes) {
  std::vector<data::ChunkInfo> chunks;
  uint64_t number = first;
  for (const int64_t size : sizes) {
    const auto records = static_cast<uint64_t>(std::max<int64_t>(size, 0));
    if (size >= 0) chunks.push_back({.records = records, .first_number = number});
    number += static_cast<uint64_t>(size < 0 ? -size : size);
  }
  const ChunkFinder finder(chunks);
  for (size_t i = 0; i < chunks.size(); ++i) {
    for (uint64_t record = 0; record < chunks[i].records; ++record) {
      ASSERT_EQ(finder.Find(chunks[i].first_number + record), i) << record;
    }
  }
}

TEST(ChunkFinderTest, FindsChunksOfAnyLength) {
  ExpectFound(0, {7});
  ExpectFound(5, {1});
  ExpectFound(0, {100, 100, 100, 3});
  ExpectFound(1'000'000'007, {1, 1000, 2, 3, 500, 1});
  ExpectFound(0, {0, 4, 0, 0, 5, 0});
}

TEST(ChunkFinderTest, NumbersMayHaveGaps) {
  ExpectFound(12, {10, -1'000'000'000, 10, 1, 10, -5, 1, 0});
  std::vector<int64_t> many(1000, 3);
  many.push_back(-(int64_t{1} << 40));
  many.push_back(2);
  ExpectFound(0, many);
}

}  // namespace
}  // namespace muster::train
