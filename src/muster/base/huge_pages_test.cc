#include "muster/base/huge_pages.h"

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

bool KernelHasThem() { return access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) == 0; }

// Whether the kernel was asked for huge pages at this address.
bool WasAsked(const void* at) {
  std::ifstream maps("/proc/self/smaps");
  const auto address = reinterpret_cast<uintptr_t>(at);
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream range(line);
    if (range >> std::hex >> begin >> dash >> end && dash == '-') {
      is_here = begin <= address && address < end;
    }
    if (is_here && line.starts_with("VmFlags:")) return line.find(" hg") != line.npos;
  }
  return false;
}

TEST(HugePagesTest, LargeMemoryHasThemAndSmallMemoryHasNot) {
  std::vector<float> large, small;
  MakeZeros(kWorthHugePages, &large);
  MakeZeros(1000, &small);
  EXPECT_EQ(WasAsked(large.data() + large.size() / 2), KernelHasThem());
  EXPECT_FALSE(WasAsked(small.data()));
  EXPECT_EQ(large, std::vector<float>(kWorthHugePages));
  EXPECT_EQ(small, std::vector<float>(1000));
  MakeZeros(10, &large);
  EXPECT_EQ(large, std::vector<float>(10));
}

TEST(HugePagesTest, AVectorGrowsAndKeepsItsValues) {
  std::vector<float> values, expected;
  size_t moves = 0;
  for (int i = 0; i < 3'000'000; ++i) {
    const float* const before = values.data();
    ReserveMore(1, &values);
    moves += values.data() == before ? 0 : 1;
    ASSERT_LT(values.size(), values.capacity());
    values.push_back(static_cast<float>(i % 1000));
    expected.push_back(static_cast<float>(i % 1000));
  }
  EXPECT_EQ(values, expected);
  EXPECT_LE(moves, 30);
  EXPECT_EQ(WasAsked(values.data() + values.size() / 2), KernelHasThem());
}

}  // namespace
}  // namespace muster
