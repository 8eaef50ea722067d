// Tests Keras's rules through the interface. optimizer_vectors_test.cc tests their numbers.
#include "muster/optim/keras_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace muster::optim {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

OptimizerSpec KerasSpec(std::string_view kind) {
  OptimizerSpec spec;
  spec.kind = kind;
  spec.rule = OptimizerSpec::Rule::kKeras;
  return spec;
}

std::vector<std::string> SlotNames(const Optimizer& optimizer) {
  std::vector<std::string> names;
  for (const SlotSpec& slot : optimizer.slots()) names.push_back(slot.name);
  return names;
}

// A table of ones and its slots.
struct KerasTable {
  KerasTable(const Optimizer& optimizer, size_t n) : weights(n, 1.0f) {
    for (const SlotSpec& slot : optimizer.slots()) slots.emplace_back(n, slot.initial_value);
    for (auto& slot : slots) pointers.push_back(slot.data());
  }
  std::vector<float> weights;
  std::vector<std::vector<float>> slots;
  std::vector<float*> pointers;
};

TEST(KerasRuleTest, SlotsHaveKerasNames) {
  EXPECT_THAT(SlotNames(**NewOptimizer(KerasSpec("adagrad"))), ElementsAre("accumulator"));
  EXPECT_THAT(SlotNames(**NewOptimizer(KerasSpec("adam"))), ElementsAre("momentum", "velocity"));
  EXPECT_THAT(SlotNames(**NewOptimizer(KerasSpec("ftrl"))), ElementsAre("accumulator", "linear"));
  OptimizerSpec rms = KerasSpec("rmsprop");
  EXPECT_THAT(SlotNames(**NewOptimizer(rms)), ElementsAre("velocity"));
  rms.parameters["momentum"] = 0.5;
  rms.parameters["centered"] = 1;
  EXPECT_THAT(SlotNames(**NewOptimizer(rms)),
              ElementsAre("velocity", "momentum", "average_gradient"));
  OptimizerSpec sgd = KerasSpec("sgd");
  EXPECT_TRUE(SlotNames(**NewOptimizer(sgd)).empty());
  sgd.parameters["momentum"] = 0.5;
  EXPECT_THAT(SlotNames(**NewOptimizer(sgd)), ElementsAre("momentum"));
}

TEST(KerasRuleTest, RulesWithAQuadraticTermWantSquares) {
  for (const bool decay : {false, true}) {
    for (const std::string_view kind : {"adagrad", "adam", "ftrl", "rmsprop", "sgd"}) {
      OptimizerSpec spec = KerasSpec(kind);
      if (decay) spec.weight_decay = 0.1;
      const auto optimizer = NewOptimizer(spec);
      ASSERT_TRUE(optimizer.ok()) << optimizer.status();
      EXPECT_EQ((*optimizer)->wants_squares(), kind != "sgd");
      EXPECT_EQ((*optimizer)->GetLayout(3).width(), kind == "sgd" ? 3 : 6);
      spec.squares = true;
      EXPECT_TRUE((*NewOptimizer(spec))->wants_squares());
      spec.rule = OptimizerSpec::Rule::kTensorFlow;
      if (kind == "ftrl") spec.weight_decay = 0;
      EXPECT_FALSE((*NewOptimizer(spec))->wants_squares());
    }
  }
}

TEST(KerasRuleTest, NoRuleIsLazy) {
  OptimizerSpec spec = KerasSpec("adam");
  spec.lazy = true;
  EXPECT_THAT(ToStd(NewOptimizer(spec).status().message()), HasSubstr("cannot be lazy"));
}

// A Walk, in any parts, changes untouched rows exactly as ApplyRows does with a gradient of zeros.
TEST(KerasRuleTest, UntouchedRowsMoveAsWithAGradientOfZero) {
  OptimizerSpec momentum = KerasSpec("sgd");
  momentum.parameters["momentum"] = 0.5;
  OptimizerSpec nesterov = momentum;
  nesterov.parameters["nesterov"] = 1;
  OptimizerSpec rms = KerasSpec("rmsprop");
  rms.parameters["momentum"] = 0.5;
  rms.parameters["centered"] = 1;
  OptimizerSpec power = KerasSpec("ftrl");
  power.parameters["learning_rate_power"] = -0.7;
  OptimizerSpec shrinks = KerasSpec("ftrl");
  shrinks.parameters["l2_shrinkage"] = 0.1;
  OptimizerSpec decays = KerasSpec("ftrl");
  decays.weight_decay = 0.1;
  constexpr int64_t kRows = 700, kCols = 3;
  const std::vector<int32_t> touched = {5, 2, 640};
  std::vector<int32_t> all(kRows);
  for (int32_t i = 0; i < kRows; ++i) all[static_cast<size_t>(i)] = i;
  for (const OptimizerSpec& spec : {momentum, nesterov, rms, power, shrinks, decays,
                                    KerasSpec("adam"), KerasSpec("ftrl"), KerasSpec("rmsprop")}) {
    const auto optimizer = *NewOptimizer(spec);
    EXPECT_TRUE(optimizer->moves_untouched_rows());
    const auto width = static_cast<size_t>(optimizer->GetLayout(kCols).width());
    KerasTable walked(*optimizer, kRows * kCols), whole(*optimizer, kRows * kCols);
    float left = 0;  // the weight of row 5 after the last step that touches it
    for (int step = 0; step < 4; ++step) {
      // The second half of the steps touches another row.
      const auto rows = std::span(touched).subspan(step < 2 ? 0 : 1, 2);
      std::vector<float> gradient(rows.size() * width, 0.25f);
      StepTable(*optimizer, walked.weights, kCols, walked.pointers, rows, gradient, step);
      std::vector<float> of_all(kRows * width);
      for (const int32_t row : rows) {
        std::fill_n(of_all.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(row) * width),
                    width, 0.25f);
      }
      StepTable(*optimizer, whole.weights, kCols, whole.pointers, all, of_all, step);
      if (step == 1) left = walked.weights[5 * kCols];
    }
    EXPECT_EQ(walked.weights, whole.weights) << OptimizerName(spec.kind);
    EXPECT_EQ(walked.slots, whole.slots) << OptimizerName(spec.kind);
    // Ftrl's slots do not change then, and its weights are computed from them.
    const bool rests = (spec.kind == "rmsprop" && spec.Get("momentum") == 0) ||
                       (spec.kind == "ftrl" && spec.Get("l2_shrinkage") == 0);
    EXPECT_EQ(walked.weights[5 * kCols] == left, rests) << OptimizerName(spec.kind);
    EXPECT_NE(left, 1) << OptimizerName(spec.kind);
  }
}

TEST(KerasRuleTest, AdagradAddsTheSumOfSquares) {
  OptimizerSpec spec = KerasSpec("adagrad");
  spec.learning_rate = 1;
  spec.parameters["initial_accumulator"] = 1;
  const auto optimizer = *NewOptimizer(spec);
  EXPECT_FALSE(optimizer->moves_untouched_rows());
  KerasTable table(*optimizer, 4);
  // Entries (1, 2) and (1, -2) of row 1.
  StepTable(*optimizer, table.weights, 2, table.pointers, std::vector<int32_t>{1},
            std::vector<float>{2, 0, 2, 8}, 0);
  EXPECT_THAT(table.slots[0], ElementsAre(1, 1, 3, 9));
  EXPECT_THAT(table.weights, ElementsAre(1, 1, FloatEq(1 - 2 / std::sqrt(3.0f)), 1));
}

TEST(RowLayoutTest, EntriesAreScaledAndSummed) {
  std::vector<float> rows = {1, 2, 3, 4, 5, 6, 7, 8};
  const RowLayout with = {.cols = 2, .squares = true}, without = {.cols = 2};
  EXPECT_EQ(with.width(), 4);
  EXPECT_EQ(without.width(), 2);
  EXPECT_EQ(SumOfSquaredEntries(with, rows), 3 + 4 + 7 + 8);
  EXPECT_EQ(SumOfSquaredEntries(without, rows), 204);
  ScaleEntries(0.5f, with, rows);
  EXPECT_THAT(rows, ElementsAre(0.5, 1, 0.75, 1, 2.5, 3, 1.75, 2));
  ScaleEntries(2, without, rows);
  EXPECT_THAT(rows, ElementsAre(1, 2, 1.5, 2, 5, 6, 3.5, 4));
  EXPECT_EQ(SumOfSquaredEntries(with, {}), 0);
}

}  // namespace
}  // namespace muster::optim
