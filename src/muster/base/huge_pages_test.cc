#include "muster/base/huge_pages.h"

#include <sys/mman.h>
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

// New pages of the kernel, which no allocator has used before.
class Pages {
 public:
  explicit Pages(size_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Pages() { munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  char* data() const { return static_cast<char*>(data_); }

 private:
  const size_t bytes_;
  void* const data_;
};

TEST(HugePagesTest, LargeMemoryIsAskedForAndSmallMemoryIsNot) {
  const Pages large(4 * kWorthHugePages), small(4 * kWorthHugePages);
  constexpr size_t kOffset = 4096 + 64;  // where no page begins
  AskForHugePages(large.data() + kOffset, kWorthHugePages);
  AskForHugePages(small.data() + kOffset, kWorthHugePages - 1);
  EXPECT_EQ(WasAsked(large.data() + kHugePageBytes + kOffset), KernelHasThem());
  EXPECT_FALSE(WasAsked(large.data() + kWorthHugePages + kHugePageBytes));
  EXPECT_FALSE(WasAsked(small.data() + kHugePageBytes + kOffset));
}

TEST(HugePagesTest, AVectorOfZeros) {
  std::vector<float> values(7, 3.0F);
  for (const size_t count : {kWorthHugePages, size_t{1000}, size_t{0}}) {
    MakeZeros(count, &values);
    EXPECT_EQ(values, std::vector<float>(count));
  }
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
}

}  // namespace
}  // namespace muster
