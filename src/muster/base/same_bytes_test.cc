#include "muster/base/same_bytes.h"

#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

// One byte that differs is found wherever it stands.
TEST(SameBytesTest, EveryLengthAndPlace) {
  for (size_t size = 0; size <= 40; ++size) {
    std::string a;
    for (size_t i = 0; i < size; ++i) a += static_cast<char>('a' + i % 23);
    std::string b = a;
    EXPECT_TRUE(SameBytes(a, b)) << size;
    EXPECT_FALSE(SameBytes(a, b + "x")) << size;
    for (size_t i = 0; i < size; ++i) {
      b[i] = '!';
      EXPECT_FALSE(SameBytes(a, b)) << size << " " << i;
      b[i] = a[i];
    }
  }
}

}  // namespace
}  // namespace muster
