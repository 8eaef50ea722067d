#include "muster/train/weights/table_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::train {
namespace {

using engine::TableUse;
using engine::VariableKind;
using features::FeatureBatch;
using testing::ElementsAre;

// An engine that has only tables and their uses.
class Tables : public engine::Engine {
 public:
  Tables(const std::vector<int64_t>& rows, std::vector<TableUse> uses) : uses_(std::move(uses)) {
    specs_.push_back(
        {.name = "dense", .kind = VariableKind::kDense, .shape = {3}, .initializer = {}});
    for (const int64_t each : rows) {
      specs_.push_back(
          {.name = "table", .kind = VariableKind::kTable, .shape = {each, 2}, .initializer = {}});
    }
  }
  std::span<const engine::VariableSpec> variables() const override { return specs_; }
  std::span<const TableUse> table_uses() const override { return uses_; }
  int logits_dimension() const override { return 1; }
  absl::StatusOr<engine::StepResult> Step(std::span<const engine::VariableView>,
                                          const FeatureBatch&, const engine::StepContext&,
                                          engine::GradientSink&) override {
    return absl::UnimplementedError("not here");
  }
  absl::Status Predict(std::span<const engine::VariableView>, const FeatureBatch&,
                       engine::Forward*) override {
    return absl::UnimplementedError("not here");
  }

 private:
  std::vector<engine::VariableSpec> specs_;
  const std::vector<TableUse> uses_;
};

FeatureBatch Batch(std::vector<std::vector<int32_t>> lists) {
  FeatureBatch batch = {.rows = static_cast<int>(lists.front().size()),
                        .dense = {},
                        .id_lists = {},
                        .labels = {},
                        .weights = {}};
  for (auto& ids : lists) batch.id_lists.push_back({.ids = std::move(ids)});
  return batch;
}

TEST(TableBlocksTest, IdsBecomeIndexesOfTheTouchedRows) {
  const Tables engine({100, 10}, {{.variable = 1, .id_list = 0}, {.variable = 2, .id_list = 1}});
  auto blocks = TableBlocks::Create(engine);
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  EXPECT_THAT(blocks->tables(), ElementsAre(1, 2));
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(blocks->Renumber(Batch({{70, -1, 5, 70}, {9, 9, 0, 9}})).ok());
    EXPECT_THAT(blocks->rows(1), ElementsAre(70, 5));
    EXPECT_THAT(blocks->rows(2), ElementsAre(9, 0));
    EXPECT_THAT(blocks->batch().id_lists[0].ids, ElementsAre(0, -1, 1, 0));
    EXPECT_THAT(blocks->batch().id_lists[1].ids, ElementsAre(0, 0, 1, 0));
  }
  ASSERT_TRUE(blocks->Renumber(Batch({{3}, {-1}})).ok());
  EXPECT_THAT(blocks->rows(1), ElementsAre(3));
  EXPECT_THAT(blocks->rows(2), ElementsAre());
}

// A column that is both wide and deep has one list and two tables; a shared embedding has two
// lists.
TEST(TableBlocksTest, TablesThatShareAListHaveTheSameNumbers) {
  const Tables engine({10, 10, 10}, {{.variable = 1, .id_list = 0},
                                     {.variable = 2, .id_list = 0},
                                     {.variable = 2, .id_list = 1},
                                     {.variable = 3, .id_list = 1}});
  auto blocks = TableBlocks::Create(engine);
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  ASSERT_TRUE(blocks->Renumber(Batch({{7, 3}, {3, 8}})).ok());
  for (const int table : {1, 2, 3}) EXPECT_THAT(blocks->rows(table), ElementsAre(7, 3, 8));
  EXPECT_THAT(blocks->batch().id_lists[0].ids, ElementsAre(0, 1));
  EXPECT_THAT(blocks->batch().id_lists[1].ids, ElementsAre(1, 2));
}

TEST(TableBlocksTest, TablesOfTwoSizesForOneListAreRefused) {
  const Tables engine({10, 20}, {{.variable = 1, .id_list = 0}, {.variable = 2, .id_list = 0}});
  EXPECT_EQ(TableBlocks::Create(engine).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(TableBlocksTest, AnIdOutsideItsTableIsAnErrorOfItsBatchAlone) {
  const Tables engine({10}, {{.variable = 1, .id_list = 0}});
  auto blocks = TableBlocks::Create(engine);
  ASSERT_TRUE(blocks.ok());
  for (const int32_t bad : {10, -2}) {
    EXPECT_EQ(blocks->Renumber(Batch({{4, bad}})).code(), absl::StatusCode::kOutOfRange);
    ASSERT_TRUE(blocks->Renumber(Batch({{4, 2}})).ok());
    EXPECT_THAT(blocks->rows(1), ElementsAre(4, 2));
  }
}

}  // namespace
}  // namespace muster::train
