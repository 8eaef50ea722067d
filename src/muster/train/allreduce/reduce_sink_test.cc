#include "muster/train/allreduce/reduce_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "muster/collective/collectives.h"
#include "muster/collective/rank_failure.h"
#include "muster/collective/test_ranks.h"

namespace muster::train {
namespace {

using collective::Group;

// The gradient of a batch's ids: entries are added up by row, rows are in order of first
// appearance, and each row has its squares after its sums.
struct RowGradients {
  RowGradients(std::span<const int32_t> ids, std::span<const float> entries, size_t cols) {
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto found = std::find(rows.begin(), rows.end(), ids[i]);
      const auto at = static_cast<size_t>(found - rows.begin()) * 2 * cols;
      if (found == rows.end()) {
        rows.push_back(ids[i]);
        values.resize(values.size() + 2 * cols);
      }
      for (size_t j = 0; j < cols; ++j) {
        const float entry = entries[i * cols + j];
        values[at + j] += entry;
        values[at + cols + j] += entry * entry;
      }
    }
  }
  std::vector<int32_t> rows;
  std::vector<float> values;
};

// Keeps the rows of a table that wants squares.
class SquaresSink : public engine::GradientSink {
 public:
  bool WantsSquares(int variable) const override { return variable == 0; }
  void Dense(int, std::span<const float>) override {}
  void Rows(int, std::span<const int32_t> given, std::span<const float> gradient) override {
    rows.assign(given.begin(), given.end());
    values.assign(gradient.begin(), gradient.end());
  }
  void Statistic(int, std::span<const float>) override {}
  std::vector<int32_t> rows;
  std::vector<float> values;
};

class NoSink : public engine::GradientSink {
 public:
  void Dense(int, std::span<const float>) override { ++calls; }
  void Rows(int, std::span<const int32_t>, std::span<const float>) override { ++calls; }
  void Statistic(int, std::span<const float>) override { ++calls; }
  int calls = 0;
};

// A rank without rows gives none.
TEST(ReduceSinkTest, MetricStatesAreSummed) {
  const std::vector<engine::VariableSpec> specs;
  const std::vector<size_t> sizes = {2, 1};
  collective::TestRanks ranks(3);
  const auto results = ranks.Run([&](Group& group) -> absl::Status {
    NoSink given;
    ReduceSink sink(specs, sizes);
    sink.Begin(group, given, 0.5, /*early=*/false);
    engine::StepResult result = {.loss = 1, .data_loss = 2};
    if (group.rank() != 1) result.metric_states = {{1, 2}, {static_cast<float>(group.rank())}};
    std::vector<std::string> notes;
    MUSTER_RETURN_IF_ERROR(sink.Reduce(&result, "", &notes));
    EXPECT_EQ(result.loss, 3);
    EXPECT_EQ(result.data_loss, 6);
    EXPECT_THAT(result.metric_states,
                testing::ElementsAre(testing::ElementsAre(2, 4), testing::ElementsAre(2)));
    return absl::OkStatus();
  });
  for (const auto& result : results) EXPECT_TRUE(result.ok()) << result;
}

TEST(ReduceSinkTest, ARankWithMoreRowsThanTheTableIsRefused) {
  std::vector<engine::VariableSpec> specs(1);
  specs[0].name = "table";
  specs[0].kind = engine::VariableKind::kTable;
  specs[0].shape = {10, 4};
  // Two losses, a note of 1 MiB, a count, and ten rows, each with its number and four floats.
  const uint64_t most = 2 * 4 + (1 << 20) + 4 + 10 * (4 + 4 * 4);
  collective::TestRanks ranks(2);
  NoSink given;
  const auto results = ranks.Run([&](Group& group) {
    if (group.rank() == 1) {
      std::vector<std::vector<std::byte>> all(2, std::vector<std::byte>(most + 1));
      return collective::AllGather(group, 2 * most, &all);
    }
    ReduceSink sink(specs);
    sink.Begin(group, given, 0.5, /*early=*/false);
    sink.Rows(0, std::vector<int32_t>{3}, std::vector<float>{1, 2, 3, 4});
    engine::StepResult result = {.loss = 1, .data_loss = 1};
    std::vector<std::string> notes;
    return sink.Reduce(&result, "note", &notes);
  });
  EXPECT_EQ(results[0].code(), absl::StatusCode::kDataLoss) << results[0];
  EXPECT_THAT(
      ToStd(results[0].message()),
      testing::HasSubstr(StrCat("sends ", most + 1, " bytes, but at most ", most, " are due")));
  EXPECT_EQ(given.calls, 0);
}

TEST(ReduceSinkTest, ARankThatSendsARowOutsideTheTableIsNamed) {
  std::vector<engine::VariableSpec> specs(1);
  specs[0].name = "table";
  specs[0].kind = engine::VariableKind::kTable;
  specs[0].shape = {10, 1};
  collective::TestRanks ranks(3);
  const auto results = ranks.Run([&](Group& group) {
    NoSink given;
    ReduceSink sink(specs);
    sink.Begin(group, given, 1.0 / 3, /*early=*/false);
    const int32_t row = group.rank() == 1 ? 10 : 3;
    sink.Rows(0, std::vector<int32_t>{row}, std::vector<float>{1});
    engine::StepResult result = {.loss = 1, .data_loss = 1};
    std::vector<std::string> notes;
    return sink.Reduce(&result, "note", &notes);
  });
  for (const absl::Status& result : results) {
    const auto failure = collective::ParseRankFailure(ToStd(result.message()));
    ASSERT_TRUE(failure.has_value()) << result;
    EXPECT_EQ(failure->rank, 1);
    EXPECT_THAT(failure->cause, testing::HasSubstr("row 10 of table, which has 10"));
  }
}

// Two replicas with halves of a batch get the same as one replica with the whole batch.
TEST(ReduceSinkTest, SquaresAreSummedOverReplicas) {
  std::vector<engine::VariableSpec> specs(1);
  specs[0].name = "table";
  specs[0].kind = engine::VariableKind::kTable;
  specs[0].shape = {10, 2};
  const std::vector<int32_t> ids = {3, 7, 3, 1, 7, 7, 9, 3};
  std::vector<float> entries;
  for (int i = 0; i < 16; ++i) entries.push_back(static_cast<float>(i * 5 % 13 - 6) / 8);
  const RowGradients whole(ids, entries, 2);
  for (int again = 0; again < 2; ++again) {
    collective::TestRanks ranks(2);
    std::vector<SquaresSink> given(2);
    const auto results = ranks.Run([&](Group& group) -> absl::Status {
      const auto rank = static_cast<size_t>(group.rank());
      const RowGradients half(std::span<const int32_t>(ids).subspan(rank * 4, 4),
                              std::span<const float>(entries).subspan(rank * 8, 8), 2);
      ReduceSink sink(specs);
      sink.Begin(group, given[rank], 0.5, /*early=*/false);
      EXPECT_TRUE(sink.WantsSquares(0));
      sink.Rows(0, half.rows, half.values);
      engine::StepResult result = {.loss = 1, .data_loss = 1};
      std::vector<std::string> notes;
      MUSTER_RETURN_IF_ERROR(sink.Reduce(&result, "note", &notes));
      sink.Give();
      return absl::OkStatus();
    });
    for (size_t rank = 0; rank < 2; ++rank) {
      ASSERT_TRUE(results[rank].ok()) << results[rank];
      EXPECT_EQ(given[rank].rows, whole.rows);
      EXPECT_EQ(given[rank].values, whole.values);
    }
  }
}

// Keeps the entries of a table.
class EntriesSink final : public SquaresSink {
 public:
  bool WantsSquares(int) const override { return false; }
  bool WantsEntries(int) const override { return true; }
};

// There may be more entries than the table has rows, and a rank may have none.
TEST(ReduceSinkTest, EntriesAreNotSummed) {
  std::vector<engine::VariableSpec> specs(1);
  specs[0].name = "table";
  specs[0].kind = engine::VariableKind::kTable;
  specs[0].shape = {3, 2};
  const std::vector<std::vector<int32_t>> rows = {{2, 0, 2, 2, 1}, {}, {2, 2}};
  const std::vector<std::vector<float>> entries = {
      {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {}, {11, 12, 13, 14}};
  collective::TestRanks ranks(3);
  std::vector<EntriesSink> given(3);
  const auto results = ranks.Run([&](Group& group) -> absl::Status {
    const auto rank = static_cast<size_t>(group.rank());
    ReduceSink sink(specs);
    // The sums of the first round are not used.
    for (int again = 0; again < 2; ++again) {
      sink.Begin(group, given[rank], 0.5, /*early=*/false);
      EXPECT_TRUE(sink.WantsEntries(0));
      sink.Rows(0, rows[rank], entries[rank]);
      engine::StepResult result = {.loss = 1, .data_loss = 1};
      std::vector<std::string> notes;
      MUSTER_RETURN_IF_ERROR(sink.Reduce(&result, "note", &notes));
      EXPECT_TRUE(given[rank].rows.empty());
    }
    sink.Give();
    return absl::OkStatus();
  });
  for (size_t rank = 0; rank < 3; ++rank) {
    ASSERT_TRUE(results[rank].ok()) << results[rank];
    EXPECT_THAT(given[rank].rows, testing::ElementsAre(2, 0, 2, 2, 1, 2, 2));
    EXPECT_THAT(given[rank].values,
                testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14));
  }
}

// Of a large group each rank sums the rows that it owns, and all get all sums; entries stay single.
TEST(ReduceSinkTest, ALargeGroupSumsRowsByTheirOwners) {
  constexpr int kRanks = 11;
  std::vector<engine::VariableSpec> specs(2);
  for (auto& spec : specs) {
    spec.kind = engine::VariableKind::kTable;
    spec.shape = {10, 1};
  }
  class Sink final : public engine::GradientSink {
   public:
    bool WantsEntries(int variable) const override { return variable == 1; }
    void Dense(int, std::span<const float>) override {}
    void Rows(int variable, std::span<const int32_t> rows,
              std::span<const float> gradient) override {
      for (size_t i = 0; i < rows.size(); ++i) {
        sums[variable][rows[i]] += gradient[i];
        ++counts[variable];
      }
    }
    void Statistic(int, std::span<const float>) override {}
    std::map<int, std::map<int32_t, float>> sums;
    std::map<int, int> counts;
  };
  collective::TestRanks ranks(kRanks);
  std::vector<Sink> given(kRanks);
  const auto results = ranks.Run([&](Group& group) -> absl::Status {
    ReduceSink sink(specs);
    sink.Begin(group, given[static_cast<size_t>(group.rank())], 0.1, /*early=*/false);
    const int32_t own = group.rank() % 10;
    const std::vector<int32_t> rows = {own, (own + 1) % 10}, twice = {own, own};
    const std::vector<float> values = {static_cast<float>(group.rank()), 100};
    sink.Rows(1, twice, values);
    sink.Rows(0, rows, values);
    engine::StepResult result = {.loss = 1, .data_loss = 1};
    std::vector<std::string> notes;
    MUSTER_RETURN_IF_ERROR(sink.Reduce(&result, StrCat("note ", group.rank()), &notes));
    EXPECT_EQ(notes.size(), size_t{kRanks});
    EXPECT_EQ(notes[7], "note 7");
    sink.Give();
    return absl::OkStatus();
  });
  std::map<int32_t, float> expected, entries;
  for (int rank = 0; rank < kRanks; ++rank) {
    expected[rank % 10] += static_cast<float>(rank);
    expected[(rank % 10 + 1) % 10] += 100;
    entries[rank % 10] += static_cast<float>(rank) + 100;
  }
  for (size_t rank = 0; rank < kRanks; ++rank) {
    ASSERT_TRUE(results[rank].ok()) << results[rank];
    EXPECT_EQ(given[rank].sums[0], expected);
    EXPECT_EQ(given[rank].counts[0], 10) << "a row comes twice";
    EXPECT_EQ(given[rank].sums[1], entries);
    EXPECT_EQ(given[rank].counts[1], 2 * kRanks);
  }
}

}  // namespace
}  // namespace muster::train
