#include "muster/checkpoint/frozen_tensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

namespace muster::checkpoint {
namespace {

class FrozenTensorsTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(FrozenTensorsTest, KeepsWhatWasThere) {
  std::vector<std::vector<int>> memory = {std::vector<int>(1'000'003), {}, {7}};  // beyond a pipe
  std::iota(memory[0].begin(), memory[0].end(), 0);
  std::vector<Tensor> tensors;
  for (std::vector<int>& values : memory) {
    tensors.push_back({"t",
                       formats::DataType::kInt32,
                       {static_cast<int64_t>(values.size())},
                       {reinterpret_cast<char*>(values.data()), values.size() * sizeof(int)}});
  }
  const auto frozen = FrozenTensors::Create(tensors, GetParam());
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  for (std::vector<int>& values : memory) std::fill(values.begin(), values.end(), -1);
  std::vector<int> read(1'000'004);
  const std::span<char> bytes(reinterpret_cast<char*>(read.data()), read.size() * sizeof(int));
  for (size_t done = 0; done < bytes.size();) {
    const size_t size = std::min<size_t>(bytes.size() - done, 99'999);
    ASSERT_TRUE((*frozen)->Read(bytes.subspan(done, size)).ok());
    done += size;
  }
  for (int i = 0; i < 1'000'003; ++i) ASSERT_EQ(read[i], i);
  EXPECT_EQ(read.back(), 7);
  char more;
  EXPECT_FALSE((*frozen)->Read({&more, 1}).ok());
}

TEST_P(FrozenTensorsTest, MayBeLeftUnread) {
  std::vector<char> memory(size_t{5} << 20, 'x');
  const std::vector<Tensor> tensors = {{"t", formats::DataType::kBool, {5 << 20}, memory}};
  for (int i = 0; i < 3; ++i) {
    const auto frozen = FrozenTensors::Create(tensors, GetParam());
    ASSERT_TRUE(frozen.ok()) << frozen.status();
    char first = 0;
    ASSERT_TRUE((*frozen)->Read({&first, 1}).ok());
    EXPECT_EQ(first, 'x');
  }
}

INSTANTIATE_TEST_SUITE_P(CopiedAndForked, FrozenTensorsTest,
                         ::testing::Values(FrozenTensors::kCopiedBytes, uint64_t{0}));

}  // namespace
}  // namespace muster::checkpoint
