#include "muster/collective/reduce_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "muster/collective/test_ranks.h"

namespace muster::collective {
namespace {

using testing::HasSubstr;

constexpr int64_t kRowsOfTables[] = {40, 3, 1000};
constexpr int64_t kColsOfTables[] = {1, 16, 3};
constexpr size_t kTables = 3;

struct Lists {
  std::vector<std::vector<int32_t>> rows;
  std::vector<std::vector<float>> values;

  std::vector<RowList> Get() const {
    std::vector<RowList> lists;
    for (size_t i = 0; i < rows.size(); ++i) lists.push_back({rows[i], values[i]});
    return lists;
  }
};

std::vector<RowTable> GetTables() {
  std::vector<RowTable> tables;
  for (size_t i = 0; i < kTables; ++i) tables.push_back({kRowsOfTables[i], kColsOfTables[i]});
  return tables;
}

// Some ranks have no rows. The values are whole numbers, whose sums are exact.
Lists GetLists(int rank) {
  std::mt19937 random(static_cast<uint32_t>(rank));
  Lists lists;
  for (size_t i = 0; i < kTables; ++i) {
    std::vector<int32_t> rows(static_cast<size_t>(kRowsOfTables[i]));
    std::iota(rows.begin(), rows.end(), 0);
    std::shuffle(rows.begin(), rows.end(), random);
    rows.resize(rank % 4 == 3 ? 0 : random() % std::min<size_t>(rows.size() + 1, 60));
    lists.rows.push_back(rows);
    lists.values.emplace_back();
    for (size_t k = 0; k < rows.size() * static_cast<size_t>(kColsOfTables[i]); ++k) {
      lists.values.back().push_back(static_cast<float>(random() % 1000));
    }
  }
  return lists;
}

using RowSums = std::map<int32_t, std::vector<float>>;

void AddTo(const RowList& list, size_t cols, RowSums* sums) {
  for (size_t k = 0; k < list.rows.size(); ++k) {
    auto& sum = sums->try_emplace(list.rows[k], std::vector<float>(cols, 0)).first->second;
    for (size_t j = 0; j < cols; ++j) sum[j] += list.values[k * cols + j];
  }
}

class ReduceRowsTest : public testing::TestWithParam<int> {};

TEST_P(ReduceRowsTest, EachRowIsSummedByOneRank) {
  TestRanks ranks(GetParam());
  const std::vector<RowTable> tables = GetTables();
  std::vector<std::vector<RowSums>> owned(static_cast<size_t>(GetParam()));
  ranks.RunAll([&](Group& group) {
    ReduceRows reduce;
    math::RowNumbers numbers;
    auto& sums = owned[static_cast<size_t>(group.rank())];
    for (int again = 0; again < 2; ++again) {
      const Lists given = GetLists(group.rank());
      std::vector<RowList> lists = given.Get();
      MUSTER_RETURN_IF_ERROR(reduce.Reduce(group, tables, lists, numbers));
      sums.assign(kTables, {});
      for (size_t i = 0; i < kTables; ++i) {
        AddTo(lists[i], static_cast<size_t>(kColsOfTables[i]), &sums[i]);
        EXPECT_EQ(sums[i].size(), lists[i].rows.size()) << "a row comes twice";
      }
    }
    return absl::OkStatus();
  });
  for (size_t i = 0; i < kTables; ++i) {
    RowSums expected, found;
    for (int rank = 0; rank < GetParam(); ++rank) {
      AddTo(GetLists(rank).Get()[i], static_cast<size_t>(kColsOfTables[i]), &expected);
      for (const auto& [row, sum] : owned[static_cast<size_t>(rank)][i]) {
        EXPECT_TRUE(found.emplace(row, sum).second) << row << " has two owners";
      }
    }
    EXPECT_EQ(found, expected) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ReduceRowsTest, testing::Values(1, 2, 9, 13, 30, 32));

TEST(ReduceRowsFailureTest, ARankThatSendsARowOutsideTheTableIsNamed) {
  TestRanks ranks(9);
  const std::vector<RowTable> tables = {{.rows = 10, .cols = 1}};
  const auto results = ranks.Run([&](Group& group) {
    ReduceRows reduce;
    math::RowNumbers numbers;
    const std::vector<int32_t> rows = {group.rank() == 4 ? 10 : 3};
    const std::vector<float> values = {1};
    std::vector<RowList> lists = {{rows, values}};
    return reduce.Reduce(group, tables, lists, numbers);
  });
  int named = 0;
  for (const absl::Status& result : results) {
    const std::string text(ToStd(result.message()));
    named += text.find("rank 4: sent row 10 of a table that has 10") != text.npos ? 1 : 0;
  }
  EXPECT_GE(named, 1);
}

TEST(ReduceRowsFailureTest, MoreBytesThanTheTablesHaveAreRefused) {
  TestRanks ranks(2);
  const std::vector<RowTable> tables = {{.rows = 10, .cols = 1}};
  const auto results = ranks.Run([&](Group& group) -> absl::Status {
    if (group.rank() == 1) {
      const std::vector<std::byte> message(4 + 10 * 8 + 1);
      std::vector<std::byte> other;
      return group.Exchange(0, message, 0, 100, &other);
    }
    ReduceRows reduce;
    math::RowNumbers numbers;
    std::vector<RowList> lists(1);
    return reduce.Reduce(group, tables, lists, numbers);
  });
  EXPECT_THAT(std::string(ToStd(results[0].message())),
              HasSubstr("sends 85 bytes, but at most 84 are due"));
}

}  // namespace
}  // namespace muster::collective
