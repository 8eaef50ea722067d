#include "muster/optim/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "muster/optim/optimizer_kind.h"

namespace muster::optim {
namespace {

OptimizerSpec GetSpec(std::string_view kind) {
  OptimizerSpec spec;
  spec.kind = kind;
  return spec;
}

TEST(NewOptimizerTest, ChecksEveryRange) {
  struct Wrong {
    const char* kind;
    const char* name;
    double value;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Wrong wrongs[] = {
      {"sgd", "learning_rate", -1},
      {"adam", "learning_rate", nan},
      {"ftrl", "initial_accumulator", -1},
      {"ftrl", "l1", -0.1},
      {"ftrl", "l2", nan},
      {"ftrl", "l2_shrinkage", -1},
      {"ftrl", "beta", -1},
      {"ftrl", "learning_rate_power", 0.5},
      {"adagrad", "initial_accumulator", -1},
      {"adagrad", "epsilon", -1},
      {"adam", "beta1", 1},
      {"adam", "beta2", -0.1},
      {"adam", "epsilon", 0},
      {"rmsprop", "rho", 1},
      {"rmsprop", "epsilon", 0},
      {"rmsprop", "momentum", nan},
      {"sgd", "momentum", 1.5},
      {"adagrad", "weight_decay", -0.1},
  };
  for (const Wrong& wrong : wrongs) {
    OptimizerSpec spec = GetSpec(wrong.kind);
    EXPECT_TRUE(NewOptimizer(spec).ok());
    if (wrong.name == std::string_view("learning_rate")) {
      spec.learning_rate = wrong.value;
    } else if (wrong.name == std::string_view("weight_decay")) {
      spec.weight_decay = wrong.value;
    } else {
      spec.parameters[wrong.name] = wrong.value;
    }
    const absl::Status status = NewOptimizer(spec).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << wrong.name;
    EXPECT_NE(ToStd(status.message()).find(StrCat(wrong.name, " is ")), std::string::npos)
        << status;
  }
}

// Checks every optimizer in the table.
TEST(NewOptimizerTest, EachParameterOfTheTableIsCheckedByItsName) {
  std::set<std::string_view> names;
  for (const OptimizerKind* const kind : OptimizerKinds()) {
    EXPECT_TRUE(names.insert(kind->name).second) << kind->name;
    for (const std::string_view name : kind->keras_classes) {
      EXPECT_TRUE(names.insert(name).second) << name;
    }
    EXPECT_EQ(FindKind(kind->name), kind);
    const OptimizerSpec spec = DefaultOptimizer(kind->name);
    EXPECT_EQ(spec.learning_rate, kind->learning_rate);
    EXPECT_TRUE(NewOptimizer(spec).ok()) << kind->name;
    for (const OptimizerParameter& parameter : kind->parameters) {
      EXPECT_EQ(GetSpec(kind->name).Get(parameter.name), parameter.fallback) << parameter.name;
      EXPECT_EQ(spec.parameters.at(parameter.name), parameter.fallback) << parameter.name;
      OptimizerSpec wrong = spec;
      wrong.parameters[parameter.name] = std::numeric_limits<double>::quiet_NaN();
      EXPECT_EQ(ToStd(NewOptimizer(wrong).status().message()),
                StrCat(OptimizerName(kind->name), ": ", parameter.name, " is nan: it must be ",
                       RangeText(parameter.range)));
    }
  }
}

TEST(WeightDecayTest, ALazyTableDecaysTheRowsOfTheStep) {
  OptimizerSpec spec = GetSpec("sgd");
  spec.learning_rate = 0.5;
  spec.weight_decay = 0.5;
  for (const bool lazy : {false, true}) {
    spec.lazy = lazy;
    const auto optimizer = NewOptimizer(spec);
    ASSERT_TRUE(optimizer.ok()) << optimizer.status();
    EXPECT_EQ((*optimizer)->moves_untouched_rows(), !lazy);
    std::vector<float> table = {8, 8, 8, 8};
    StepTable(**optimizer, table, 2, {}, std::vector<int32_t>{1}, std::vector<float>{0, 2}, 0);
    // 8 - 8 * 0.5 * 0.5 = 6, and one of them 0.5 * 2 less.
    EXPECT_EQ(table, (std::vector<float>{lazy ? 8.f : 6.f, lazy ? 8.f : 6.f, 6, 5}));
  }
}

TEST(NewOptimizerTest, ALearningRateOfZeroChangesNothing) {
  for (const std::string_view kind : {"adagrad", "adam", "rmsprop", "sgd"}) {
    OptimizerSpec spec = GetSpec(kind);
    spec.learning_rate = 0;
    const auto optimizer = NewOptimizer(spec);
    ASSERT_TRUE(optimizer.ok()) << optimizer.status();
    std::vector<float> table = {8, -3};
    std::vector<std::vector<float>> memory;
    std::vector<float*> slots;
    for (const auto& slot : (*optimizer)->slots()) memory.push_back({slot.initial_value, 0.5});
    for (auto& slot : memory) slots.push_back(slot.data());
    (*optimizer)->ApplyRows(table, 2, slots, std::vector<int32_t>{0}, std::vector<float>{1, 2}, 0);
    EXPECT_EQ(table, (std::vector<float>{8, -3})) << OptimizerName(kind);
  }
  OptimizerSpec ftrl = GetSpec("ftrl");
  ftrl.learning_rate = 0;
  EXPECT_NE(ToStd(NewOptimizer(ftrl).status().message()).find("divides by"), std::string::npos);
}

TEST(NewOptimizerTest, RefusesNamesThatAreNotInTheTable) {
  EXPECT_EQ(ToStd(NewOptimizer(GetSpec("adom")).status().message()),
            "unknown optimizer 'adom' (did you mean 'adam'?)");
  OptimizerSpec spec = GetSpec("sgd");
  spec.parameters["rho"] = 0.5;
  EXPECT_EQ(ToStd(NewOptimizer(spec).status().message()), "SGD has no parameter 'rho'");
}

TEST(NewOptimizerTest, RefusesImpossibleCombinations) {
  OptimizerSpec ftrl = GetSpec("ftrl");
  ftrl.weight_decay = 0.1;
  EXPECT_NE(ToStd(NewOptimizer(ftrl).status().message()).find("give l2"), std::string::npos);
  OptimizerSpec nesterov = GetSpec("sgd");
  nesterov.parameters["nesterov"] = 1;
  EXPECT_NE(ToStd(NewOptimizer(nesterov).status().message()).find("momentum over 0"),
            std::string::npos);
  OptimizerSpec decayed = GetSpec("ftrl");
  decayed.schedule.kind = ScheduleSpec::Kind::kCosine;
  decayed.schedule.decay_steps = 10;
  EXPECT_NE(ToStd(NewOptimizer(decayed).status().message()).find("reaches 0"), std::string::npos);
  decayed.schedule.alpha = 0.1;
  EXPECT_TRUE(NewOptimizer(decayed).ok());
  decayed.schedule.warm_up_steps = 5;
  EXPECT_FALSE(NewOptimizer(decayed).ok());
  decayed.kind = "adam";
  EXPECT_TRUE(NewOptimizer(decayed).ok());
}

TEST(OptimizerTest, SlotsHaveTheirInitialValues) {
  OptimizerSpec spec = GetSpec("ftrl");
  spec.parameters["initial_accumulator"] = 0.25;
  const auto ftrl = *NewOptimizer(spec);
  ASSERT_EQ(ftrl->slots().size(), 2u);
  EXPECT_EQ(ftrl->slots()[0].name, "accumulator");
  EXPECT_EQ(ftrl->slots()[0].initial_value, 0.25f);
  EXPECT_EQ(ftrl->slots()[1].name, "linear");
  EXPECT_EQ(ftrl->slots()[1].initial_value, 0);
  const auto adam = *NewOptimizer(GetSpec("adam"));
  ASSERT_EQ(adam->slots().size(), 2u);
  EXPECT_EQ(adam->slots()[0].name, "m");
  EXPECT_EQ(adam->slots()[1].name, "v");
  OptimizerSpec rms = GetSpec("rmsprop");
  rms.parameters["momentum"] = 0.5;
  rms.parameters["centered"] = 1;
  const auto rms_prop = *NewOptimizer(rms);
  ASSERT_EQ(rms_prop->slots().size(), 3u);
  EXPECT_EQ(rms_prop->slots()[0].name, "rms");
  EXPECT_EQ(rms_prop->slots()[1].name, "momentum");
  EXPECT_EQ(rms_prop->slots()[2].name, "mg");
  EXPECT_TRUE((*NewOptimizer(GetSpec("sgd")))->slots().empty());
}

// The weights of a table after `steps` updates of `rows`.
std::vector<float> TrainRows(const Optimizer& optimizer, std::vector<float> table, int64_t cols,
                             std::span<const int32_t> rows, std::span<const float> gradient,
                             int steps) {
  std::vector<std::vector<float>> slots;
  std::vector<float*> pointers;
  for (const SlotSpec& slot : optimizer.slots()) {
    slots.emplace_back(table.size(), slot.initial_value);
  }
  for (auto& slot : slots) pointers.push_back(slot.data());
  for (int step = 0; step < steps; ++step) {
    StepTable(optimizer, table, cols, pointers, rows, gradient, step);
  }
  return table;
}

TEST(OptimizerTest, OnlyDenseEquivalentAdamMovesUntouchedRows) {
  OptimizerSpec lazy = GetSpec("adam");
  lazy.lazy = true;
  OptimizerSpec any_power = GetSpec("ftrl");
  any_power.parameters["learning_rate_power"] = -0.7;
  OptimizerSpec momentum = GetSpec("sgd");
  momentum.parameters["momentum"] = 0.5;
  const OptimizerSpec specs[] = {GetSpec("ftrl"), any_power, GetSpec("adagrad"), lazy,
                                 GetSpec("sgd"),  momentum,  GetSpec("rmsprop"), GetSpec("adam")};
  const int32_t touched[] = {3, 1};
  for (const OptimizerSpec& spec : specs) {
    const auto optimizer = *NewOptimizer(spec);
    for (const int64_t cols : {1, 3, 8, 16}) {
      const std::vector<float> gradient(2 * cols, 0.5f);
      const std::vector<float> table(5 * cols, 1.0f);
      const std::vector<float> after = TrainRows(*optimizer, table, cols, touched, gradient, 2);
      for (int64_t i = 0; i < 5 * cols; ++i) {
        const bool is_touched = i / cols == 1 || i / cols == 3;
        EXPECT_EQ(after[i] != 1.0f, is_touched) << OptimizerName(spec.kind) << " " << i;
      }
    }
    EXPECT_EQ(optimizer->moves_untouched_rows(),
              spec == GetSpec("adam") || spec == GetSpec("rmsprop"));
  }
}

TEST(TouchedRowsTest, RunsOfAllPartsCoverTheUntouchedRows) {
  const std::vector<int32_t> rows = {0, 5, 63, 64, 65, 130, 199};
  TouchedRows touched;
  touched.Assign(900, {});  // another table, of which nothing must remain
  touched.Assign(200, rows);
  for (const int64_t middle : {0, 1, 5, 6, 63, 64, 66, 128, 199, 200}) {
    std::vector<int> visits(200);
    const auto visit = [&](int64_t begin, int64_t count) {
      ASSERT_GT(count, 0);
      for (int64_t row = begin; row < begin + count; ++row) ++visits[row];
    };
    touched.ForEachUntouchedRun(0, middle, visit);
    touched.ForEachUntouchedRun(middle, 200, visit);
    for (int row = 0; row < 200; ++row) {
      EXPECT_EQ(visits[row], std::find(rows.begin(), rows.end(), row) == rows.end()) << row;
    }
  }
}

// A row that was touched once continues moving by its momentum; a lazy one does not.
TEST(OptimizerTest, DenseEquivalentAdamIsDenseAdam) {
  const auto adam = *NewOptimizer(GetSpec("adam"));
  std::vector<float> table(6, 1.0f), m(6), v(6), dense(6, 1.0f), dense_m(6), dense_v(6);
  float* const slots[] = {m.data(), v.data()};
  float* const dense_slots[] = {dense_m.data(), dense_v.data()};
  const std::vector<int32_t> rows = {1};
  const std::vector<float> gradient = {0.5f, -0.25f};
  for (int64_t step = 0; step < 50; ++step) {
    std::vector<float> whole(6);
    if (step < 3) {
      StepTable(*adam, table, 2, slots, rows, gradient, step);
      whole[2] = gradient[0];
      whole[3] = gradient[1];
    } else {
      StepTable(*adam, table, 2, slots, {}, {}, step);
    }
    adam->ApplyDense(dense, dense_slots, whole, step);
  }
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(table[i], dense[i], 2e-6) << i;
  EXPECT_GT(std::fabs(table[2] - 1.0f), 0.1f);
}

// In every row the mean of squares decays or, if lazy, only in the rows of the step.
TEST(OptimizerTest, LazyRmsPropLeavesOtherRowsSlots) {
  for (const bool lazy : {false, true}) {
    OptimizerSpec spec = GetSpec("rmsprop");
    spec.lazy = lazy;
    const auto optimizer = *NewOptimizer(spec);
    std::vector<float> table(200, 1.0f), rms(200, 0.5f);
    float* const slots[] = {rms.data()};
    const std::vector<int32_t> rows = {65, 0, 99};
    StepTable(*optimizer, table, 2, slots, rows, std::vector<float>(6, 0.1f), 0);
    for (int row = 0; row < 100; ++row) {
      const bool is_touched = row == 0 || row == 65 || row == 99;
      const float expected = is_touched ? 0.9f * 0.5f + 0.1f * 0.01f : lazy ? 0.5f : 0.9f * 0.5f;
      EXPECT_NEAR(rms[2 * row], expected, 1e-7) << row;
      EXPECT_EQ(table[2 * row] != 1.0f, is_touched) << row;
    }
  }
}

}  // namespace
}  // namespace muster::optim
