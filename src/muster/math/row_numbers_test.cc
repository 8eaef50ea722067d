#include "muster/math/row_numbers.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>

#include "muster/base/random.h"

namespace muster::math {
namespace {

// The result must not depend on what earlier passes over any tables left in memory, nor on whether
// the internal numbers have begun at 0 again.
TEST(RowNumbersTest, AreInTheOrderOfFirstAppearance) {
  RandomStream random(20261122, RandomPurpose::kSampleData, 5);
  RowNumbers numbers;
  for (int call = 0; call < 400; ++call) {
    const int64_t rows = int64_t{1} + static_cast<int64_t>(random.Below(300));
    // Passes over so many rows make the internal numbers begin at 0 again.
    const size_t most = call % 7 == 3 ? size_t{UINT32_MAX} - 1 : 200;
    RowNumbers::Pass pass = numbers.Begin(rows, most);
    std::map<int32_t, uint32_t> expected;
    for (int i = 0; i < 200; ++i) {
      const auto row = static_cast<int32_t>(random.Below(static_cast<uint64_t>(rows)));
      const auto [at, is_new] = expected.emplace(row, static_cast<uint32_t>(expected.size()));
      ASSERT_EQ(pass.GetNumber(row), at->second) << "call " << call;
      ASSERT_EQ(pass.count(), expected.size());
    }
    numbers.End(pass);
  }
}

}  // namespace
}  // namespace muster::math
