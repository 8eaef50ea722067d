#include "muster/ps/wire/placement.h"

#include <gtest/gtest.h>

#include <limits>
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

TEST(PlacementTest, LocateAgreesWithCutAndWithRuns) {
  for (const int64_t rows : {1, 10, 47, 48, 49, 145, 1000, 5003}) {
    const Variables variables = {Table(rows, 2)};
    const Placement placement(variables, 3);
    std::vector<float> whole(static_cast<size_t>(rows) * 2);
    std::iota(whole.begin(), whole.end(), 0.0f);
    std::vector<std::vector<float>> parts(3);
    std::vector<RowPlace> by_runs(static_cast<size_t>(rows));
    for (int server = 0; server < 3; ++server) {
      auto& part = parts[static_cast<size_t>(server)];
      part.resize(static_cast<size_t>(placement.part(0, server).elements()));
      placement.Cut(0, server, whole.data(), 0, part);
      for (const RowRun& run : placement.GetRuns(0, server)) {
        for (int64_t i = 0; i < run.count; ++i) {
          ASSERT_LT(run.first + i, rows);
          by_runs[static_cast<size_t>(run.first + i)] = {server,
                                                         static_cast<int32_t>(run.local + i)};
        }
      }
    }
    for (int32_t row = 0; row < rows; ++row) {
      const RowPlace at = placement.Locate(row);
      EXPECT_EQ(parts[static_cast<size_t>(at.server)][static_cast<size_t>(at.row) * 2],
                whole[static_cast<size_t>(row) * 2])
          << row;
      EXPECT_EQ(at, by_runs[static_cast<size_t>(row)]) << row;
    }
  }
}

// Where ids are as frequent as words, 1 / rank, each server gets its share of the rows that are
// touched, of a table of any size.
TEST(PlacementTest, FrequentRowsAreSharedEvenly) {
  for (const int servers : {2, 3, 8}) {
    for (const int32_t rows : {10'000, 1'000'000}) {
      const Placement placement(Variables{Table(rows, 1)}, servers);
      std::vector<double> load(static_cast<size_t>(servers));
      double all = 0;
      for (int32_t row = 0; row < rows; ++row) {
        load[static_cast<size_t>(placement.Locate(row).server)] += 1.0 / (row + 10);
        all += 1.0 / (row + 10);
      }
      for (const double each : load) EXPECT_NEAR(each * servers / all, 1, 0.1) << servers << rows;
    }
  }
}

TEST(PlacementTest, ATableHasFewRuns) {
  const Placement placement(Variables{Table(100'000'000, 1)}, 4);
  for (int server = 0; server < 4; ++server) {
    EXPECT_LT(placement.GetRuns(0, server).size(), 20U * kBlocksOfSize + kBlocksOfSize);
  }
}

TEST(PlacementTest, TheLastRowsOfTheLargestTableAreSomewhere) {
  const int32_t last = std::numeric_limits<int32_t>::max() - 1;
  const Placement placement(Variables{Table(int64_t{last} + 1, 1)}, 7);
  const RowPlace at = placement.Locate(last);
  EXPECT_LT(at.row, placement.part(0, at.server).rows);
  EXPECT_GE(at.row, 0);
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
