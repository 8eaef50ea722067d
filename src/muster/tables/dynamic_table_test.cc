#include "muster/tables/dynamic_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "muster/tables/dynamic_table_image.h"
#include "muster/tables/key_order.h"

namespace muster::tables {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr int kCols = 2;

class DynamicTableTest : public testing::Test {
 protected:
  DynamicTableTest() { Use({}); }

  void Use(Growth growth, const char* kind = "sgd",
           optim::OptimizerSpec::Rule rule = optim::OptimizerSpec::Rule::kTensorFlow) {
    optim::OptimizerSpec spec{.kind = kind, .rule = rule, .learning_rate = 1};
    optimizer_ = optim::NewOptimizer(spec).value();
    growth.stddev = 0.5;
    spec_ = {.name = "users", .cols = kCols, .optimizer = optimizer_.get(), .growth = growth};
    table_ = std::make_unique<DynamicTable>(spec_, 1);
  }
  std::vector<float> Read(int64_t key) const {
    std::vector<float> row(kCols);
    table_->Read(std::vector<int64_t>{key}, row.data());
    return row;
  }
  // Every gradient is 1.
  void Step(const std::vector<int64_t>& keys, int64_t step) {
    table_->Apply(keys, std::vector<float>(keys.size() * kCols, 1), step);
  }
  std::vector<int64_t> KeysWithRows() const {
    DynamicTableImage image;
    CopyImage(*table_, spec_, &image);
    return image.keys;
  }

  std::unique_ptr<optim::Optimizer> optimizer_;
  DynamicTableSpec spec_;
  std::unique_ptr<DynamicTable> table_;
};

TEST_F(DynamicTableTest, ANewKeyGetsTheInitialRowThatWasRead) {
  const std::vector<float> initial = Read(7);
  EXPECT_NE(initial[0], 0);
  EXPECT_EQ(table_->rows(), 0) << "reading makes no row";
  Step({7, -9}, 0);
  EXPECT_EQ(table_->rows(), 2);
  EXPECT_THAT(Read(7), ElementsAre(initial[0] - 1, initial[1] - 1));
  EXPECT_NE(Read(-9), Read(7));
}

TEST_F(DynamicTableTest, AnInitialRowDependsOnTheKeyAlone) {
  const std::vector<float> first = Read(5);
  Step({1, 2, 3}, 0);
  EXPECT_EQ(Read(5), first);
  EXPECT_NE(Read(6), first);
  std::set<float> values;
  for (int64_t key = 0; key < 1000; ++key) values.insert(Read(key)[0]);
  EXPECT_GT(values.size(), 990u);
}

TEST_F(DynamicTableTest, AKeyIsAdmittedByTheThirdStepThatNamesIt) {
  Use({.admit_after = 3});
  for (int64_t step = 0; step < 2; ++step) {
    EXPECT_THAT(Read(7), Each(0)) << step;
    Step({7, 100 + step}, step);
    EXPECT_EQ(table_->rows(), 0);
  }
  const std::vector<float> initial = Read(7);
  EXPECT_NE(initial[0], 0) << "this step will admit it";
  EXPECT_THAT(Read(100), Each(0));
  Step({100, 7, 101}, 2);
  EXPECT_THAT(KeysWithRows(), UnorderedElementsAre(7));
  // Gradients from before the key had a row are dropped.
  EXPECT_THAT(Read(7), ElementsAre(initial[0] - 1, initial[1] - 1));
}

TEST_F(DynamicTableTest, AKeyThatNoStepNamesExpires) {
  Use({.admit_after = 2, .expire_after = 8});
  Step({1, 2}, 0);
  Step({1, 2, 3}, 1);  // 1 and 2 have rows, 3 waits
  const std::vector<float> trained = Read(2);
  for (int64_t step = 2; step < 9; ++step) Step({2}, step);
  EXPECT_THAT(KeysWithRows(), UnorderedElementsAre(1, 2));
  EXPECT_EQ(table_->size(), 3);
  Step({2}, 9);
  EXPECT_THAT(KeysWithRows(), UnorderedElementsAre(2));
  EXPECT_EQ(table_->size(), 1) << "3 is forgotten too";
  EXPECT_FLOAT_EQ(Read(2)[0], trained[0] - 8);
  // A forgotten key is counted again from 0.
  Step({1}, 10);
  EXPECT_THAT(KeysWithRows(), UnorderedElementsAre(2));
}

TEST_F(DynamicTableTest, AFullTableAdmitsNoKeyUntilAnotherExpires) {
  Use({.expire_after = 8, .capacity = 2});
  Step({1, 2, 3}, 0);
  EXPECT_THAT(KeysWithRows(), UnorderedElementsAre(1, 2));
  EXPECT_EQ(table_->size(), 2) << "keys that do not fit use no memory";
  EXPECT_THAT(Read(3), Each(0));
  for (int64_t step = 1; step < 9; ++step) Step({2, 3}, step);
  EXPECT_THAT(KeysWithRows(), UnorderedElementsAre(2));
  Step({3}, 9);
  EXPECT_THAT(KeysWithRows(), UnorderedElementsAre(2, 3));
}

TEST_F(DynamicTableTest, TablesOfOneVariableShareTheCapacity) {
  Use({.capacity = 5});
  DynamicTable part(spec_, 2);
  part.Apply(std::vector<int64_t>{1, 2, 3, 4, 5}, std::vector<float>(5 * kCols), 0);
  EXPECT_EQ(part.rows(), 3);
}

// Slots stay with their rows when rows move to other places.
TEST_F(DynamicTableTest, ATableMadeFromAnImageContinuesLikeTheOriginal) {
  for (const char* const kind : {"adagrad", "adam"}) {
    Use({.admit_after = 2, .expire_after = 16}, kind);
    const auto keys_of = [](int64_t step) {
      std::set<int64_t> keys;
      for (int64_t i = 0; i < 6; ++i) keys.insert((step * 31 + i * i * 7) % 40 * 1'000'003);
      return std::vector<int64_t>(keys.begin(), keys.end());
    };
    for (int64_t step = 0; step < 50; ++step) Step(keys_of(step), step);
    DynamicTableImage image, again;
    CopyImage(*table_, spec_, &image);
    ASSERT_GT(image.keys.size(), 5u);
    ASSERT_GT(image.waiting_keys.size(), 0u);
    EXPECT_TRUE(std::ranges::is_sorted(image.keys, IsKeyBefore));
    EXPECT_TRUE(std::ranges::is_sorted(image.waiting_keys, IsKeyBefore));
    DynamicTable other(spec_, 1);
    ASSERT_TRUE(UseImage(image, spec_, &other).ok());
    for (int64_t step = 50; step < 100; ++step) {
      Step(keys_of(step), step);
      const std::vector<int64_t> keys = keys_of(step);
      other.Apply(keys, std::vector<float>(keys.size() * kCols, 1), step);
    }
    CopyImage(*table_, spec_, &image);
    CopyImage(other, spec_, &again);
    EXPECT_EQ(image.keys, again.keys);
    EXPECT_EQ(image.weights, again.weights);
    EXPECT_EQ(image.slots, again.slots);
    EXPECT_EQ(image.last_steps, again.last_steps);
    EXPECT_EQ(image.waiting_keys, again.waiting_keys);
    EXPECT_EQ(image.waiting_counts, again.waiting_counts);
  }
}

TEST_F(DynamicTableTest, EntriesThatDoNotFitAreRefused) {
  EXPECT_THAT(ToStd(table_->Add({.keys = {1}, .counts = {0}, .last_steps = {0}}).message()),
              HasSubstr("1 keys with 1 counts, 1 steps and 0 floats"));
  const DynamicTableEntries twice = {.keys = {1, 1}, .counts = {3, 4}, .last_steps = {0, 0}};
  EXPECT_THAT(ToStd(table_->Add(twice).message()), HasSubstr("the key 1 appears twice"));
}

// Gradients with squares (optim/row_layout.h) are copied together like others.
TEST_F(DynamicTableTest, SquaresStayWithTheirKeys) {
  using Spec = optim::OptimizerSpec;
  Use({.admit_after = 2}, "adagrad", Spec::Rule::kKeras);
  table_->Apply(std::vector<int64_t>{7, 9}, std::vector<float>(8), 0);
  EXPECT_EQ(table_->rows(), 0);
  // Key 8 is new and waits.
  table_->Apply(std::vector<int64_t>{7, 8, 9},
                std::vector<float>{1, 2, 3, 4, 0, 0, 99, 99, 5, 6, 7, 8}, 1);
  DynamicTableImage image;
  CopyImage(*table_, spec_, &image);
  EXPECT_THAT(image.keys, ElementsAre(7, 9));
  ASSERT_EQ(image.slots.size(), 1u);
  EXPECT_THAT(image.slots[0], ElementsAre(3.1f, 4.1f, 7.1f, 8.1f));
}

}  // namespace
}  // namespace muster::tables
