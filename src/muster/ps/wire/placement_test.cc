#include "muster/ps/wire/placement.h"

#include <gtest/gtest.h>

#include <numeric>

namespace muster::ps {
namespace {

Variable Dense(int64_t elements) { return {.name = "d", .rows = 1, .cols = elements}; }
Variable Table(int64_t rows, int64_t cols) {
  return {.name = "t", .kind = Variable::Kind::kTable, .rows = rows, .cols = cols};
}

TEST(PlacementTest, EveryElementIsOnExactlyOneServer) {
  const Variables variables = {Dense(7),           Table(10, 3),        Dense(3 * kSplitFloats + 5),
                               Table(2, 1),        Dense(kBlockFloats), Table(100, 16),
                               Dense(kSplitFloats)};
  for (const int servers : {1, 2, 3, 7}) {
    const Placement placement(variables, servers);
    for (size_t i = 0; i < variables.size(); ++i) {
      const int variable = static_cast<int>(i);
      std::vector<float> whole(static_cast<size_t>(variables[i].elements()));
      std::iota(whole.begin(), whole.end(), 1.0f);
      std::vector<float> back(whole.size());
      int64_t elements = 0;
      for (int server = 0; server < servers; ++server) {
        std::vector<float> part(static_cast<size_t>(placement.part(variable, server).elements()));
        elements += static_cast<int64_t>(part.size());
        placement.Cut(variable, server, whole.data(), 0, part);
        // Copies two pieces, with the cut inside a row.
        const size_t middle = part.size() / 2;
        placement.Paste(variable, server, std::span(part).first(middle), 0, back.data());
        placement.Paste(variable, server, std::span(part).subspan(middle),
                        static_cast<int64_t>(middle), back.data());
      }
      EXPECT_EQ(elements, variables[i].elements()) << variable << " of " << servers;
      EXPECT_TRUE(back == whole) << variable << " of " << servers;
    }
  }
}

TEST(PlacementTest, GetServerAndLocalRowAgreeWithCut) {
  const Variables variables = {Table(10, 2)};
  const Placement placement(variables, 3);
  std::vector<float> whole(20);
  std::iota(whole.begin(), whole.end(), 0.0f);
  for (int32_t row = 0; row < 10; ++row) {
    const int server = placement.GetServer(row);
    std::vector<float> part(static_cast<size_t>(placement.part(0, server).elements()));
    placement.Cut(0, server, whole.data(), 0, part);
    EXPECT_EQ(part[static_cast<size_t>(placement.LocalRow(row)) * 2], whole[row * 2]) << row;
  }
}

TEST(PlacementTest, SmallVariablesGoToTheServerWithTheFewestFloats) {
  const Variables variables = {Dense(100), Dense(60), Dense(30), Dense(5)};
  const Placement placement(variables, 2);
  EXPECT_EQ(placement.dense_floats(0), 100);
  EXPECT_EQ(placement.dense_floats(1), 95);
}

TEST(PlacementTest, LargeVariablesAreCutBetweenBlocks) {
  const Variables variables = {Dense(kSplitFloats + 3)};
  const Placement placement(variables, 3);
  for (int server = 0; server < 3; ++server) {
    EXPECT_EQ(placement.part(0, server).first % kBlockFloats, 0);
    EXPECT_GT(placement.part(0, server).elements(), kSplitFloats / 4);
  }
}

TEST(PlacementOfKeysTest, KeysAreSpreadOverServers) {
  const std::vector<Variable> none;
  const Placement placement(none, 3);
  for (const int64_t stride : {1, 2, 3, 1024, -6}) {
    std::vector<int> count(3);
    for (int64_t i = 0; i < 3000; ++i)
      ++count[static_cast<size_t>(placement.GetServerOfKey(i * stride))];
    for (const int each : count) EXPECT_NEAR(each, 1000, 250) << stride;
  }
}

}  // namespace
}  // namespace muster::ps
