// The conformance suite of Engine: engine.h as tests. The test of an implementation contains
//   INSTANTIATE_TEST_SUITE_P(Mine, EngineConformance, testing::Values(EngineMember{...}),
//                            EngineMemberName);
// Include it in one source file of a test program. Tests of a step's gradients are in
// engine_conformance_step.h, tests of refused input in engine_conformance_refusals.h.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/engine/test_support.h"

namespace muster::engine {

// A model, and what the tests must know about it to compute the right results. Its weights are
// normally distributed numbers; tables have the sizes of variables().
struct EngineMember {
  std::string name;
  std::function<absl::StatusOr<std::unique_ptr<Engine>>()> make;
  // Makes a batch of some rows with labels, the first two with different predictions; some ids of a
  // table occur more than once. Has no id lists if the engine finds them (finds_ids).
  std::function<features::FeatureBatch()> batch;
  bool is_random = false;  // dropout
  enum class BatchNorm { kNone, kOwnRows, kSynchronized } batch_norm = BatchNorm::kNone;
  bool gives_squares = false;
  bool is_mean = true;  // the loss is a mean over rows, so the denominator matters
  // replicas can add up losses: the sum is not divided by something else, such as a mask
  bool is_separable = true;
  // loss_sum is the whole loss of the batch, as Keras's evaluate computes it, times its rows;
  // otherwise it is the sum over rows of the loss without regularisation.
  bool evaluates_as_keras = false;
  // A NaN weight may not show in the loss: TensorFlow's product with relu turns it into 0.
  bool hides_nan = false;
  double precision = 1e-5;  // of the results, relative to the largest value of a variable
  // the number of inputs, which come before the labels in the batch's `raw`
  size_t input_columns = 0;
};

inline std::string EngineMemberName(const testing::TestParamInfo<EngineMember>& member) {
  return member.param.name;
}

inline void PrintTo(const EngineMember& member, std::ostream* out) { *out << member.name; }

// All tests use the same engine of a member, one after the other: no test may leave it damaged.
class EngineConformance : public testing::TestWithParam<EngineMember> {
 protected:
  static void TearDownTestSuite() { Engines().clear(); }
  void SetUp() override {
    std::unique_ptr<Engine>& engine = Engines()[GetParam().name];
    if (engine == nullptr) engine = Make();
    ASSERT_NE(engine, nullptr);
    engine_ = engine.get();
    weights_.emplace(*engine_);
    batch_ = GetParam().batch();
    ASSERT_GE(batch_.rows, 4);
    before_.emplace(Step(batch_));
  }
  void TearDown() override {
    if (!before_) return;
    weights_.emplace(*engine_);
    SCOPED_TRACE("the same step after the test");
    ExpectSame(Step(batch_), *before_);
  }
  static std::unique_ptr<Engine> Make() {
    absl::StatusOr<std::unique_ptr<Engine>> made = GetParam().make();
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *std::move(made) : nullptr;
  }

  struct Outcome {
    StepResult result;
    RecordingSink given;
  };
  static Outcome GetStep(Engine& engine, std::span<const VariableView> weights,
                         const features::FeatureBatch& batch, const StepContext& context = {},
                         bool with_squares = false) {
    RecordingSink sink(engine, with_squares);
    const auto result = engine.Step(weights, batch, context, sink);
    EXPECT_TRUE(result.ok()) << result.status();
    return {result.ok() ? *result : StepResult(), sink};
  }
  Outcome Step(const features::FeatureBatch& batch, const StepContext& context = {}) {
    return GetStep(*engine_, weights_->views(), batch, context);
  }
  Forward Predict(const features::FeatureBatch& batch) {
    // The old contents must be gone after the call.
    Forward out{.logits = {1, 2, 3}, .loss_sum = 4, .predictions = {{}}, .metric_states = {{1}}};
    const absl::Status status = engine_->Predict(weights_->views(), batch, &out);
    EXPECT_TRUE(status.ok()) << status;
    return out;
  }
  // The batch with the id lists that table_uses() names.
  features::FeatureBatch WithIds() {
    features::FeatureBatch batch = batch_;
    if (!engine_->finds_ids()) return batch;
    const absl::Status status = engine_->FindIds(&batch);
    EXPECT_TRUE(status.ok()) << status;
    return batch;
  }
  static void ExpectSame(const Outcome& got, const Outcome& want) {
    EXPECT_EQ(got.result.loss, want.result.loss);
    EXPECT_EQ(got.result.data_loss, want.result.data_loss);
    EXPECT_EQ(got.given.order, want.given.order);
    EXPECT_EQ(got.given.rows, want.given.rows);
    EXPECT_EQ(got.given.dense, want.given.dense);
    EXPECT_EQ(got.given.squares, want.given.squares);
    EXPECT_EQ(got.given.statistics, want.given.statistics);
  }
  // Expects that numbers differ by less than the member's precision times the largest one.
  template <typename T>
  static void ExpectNear(const std::string& name, const std::vector<T>& got,
                         const std::vector<T>& want) {
    ASSERT_EQ(got.size(), want.size()) << name;
    double largest = 1;
    for (const T value : want) largest = std::max<double>(largest, std::fabs(value));
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], GetParam().precision * largest) << name << " element " << i;
    }
  }
  static void ExpectNear(const RecordingSink::Values& got, const RecordingSink::Values& want) {
    ASSERT_EQ(got.size(), want.size());
    for (const auto& [name, values] : want) {
      ASSERT_TRUE(got.contains(name)) << name;
      ExpectNear(name, got.find(name)->second, values);
    }
  }
  static void ExpectInvalid(const absl::Status& status, const std::string& what) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << what << ": " << status;
    EXPECT_GT(status.message().size(), 10u) << what;
  }
  void ExpectRefused(const features::FeatureBatch& batch, const std::string& what,
                     bool by_predict = true) {
    RecordingSink sink(*engine_);
    Forward out;
    ExpectInvalid(engine_->Step(weights_->views(), batch, {}, sink).status(), what);
    EXPECT_THAT(sink.order, testing::IsEmpty()) << what;
    if (by_predict) ExpectInvalid(engine_->Predict(weights_->views(), batch, &out), what);
  }
  bool IsTable(size_t variable) const {
    return engine_->variables()[variable].kind == VariableKind::kTable;
  }
  // Returns a group number for each variable: tables that share lists, directly or through other
  // tables, have the same number; variables that are not tables have -1.
  std::vector<int> GroupsOfTables() const {
    std::vector<int> groups(engine_->variables().size(), -1);
    for (const TableUse& use : engine_->table_uses()) groups[Index(use.variable)] = use.variable;
    for (size_t pass = 0; pass < groups.size(); ++pass) {
      for (const TableUse& a : engine_->table_uses()) {
        for (const TableUse& b : engine_->table_uses()) {
          if (a.id_list != b.id_list) continue;
          int& of_a = groups[Index(a.variable)];
          of_a = std::min(of_a, groups[Index(b.variable)]);
        }
      }
    }
    return groups;
  }
  // Blocks of the tables, and a batch whose ids are rows of the blocks.
  struct Blocks {
    features::FeatureBatch batch;
    std::vector<int> group_of;               // GroupsOfTables
    std::vector<std::vector<int32_t>> rows;  // by group: the table row of each block row
    std::vector<std::vector<float>> memory;
    std::vector<VariableView> views;
    int32_t GetRow(size_t variable, int32_t row) const {
      return rows[Index(group_of[variable])][Index(row)];
    }
  };
  // `apart`: each appearance of an id has its own row, in order of appearance. Otherwise each id
  // has one row, the greatest id first, after one row that no id names.
  Blocks GetBlocks(const features::FeatureBatch& found, bool apart) {
    Blocks blocks{found, GroupsOfTables(), {}, {}, weights_->mutable_views()};
    blocks.rows.resize(blocks.views.size());
    blocks.memory.resize(blocks.views.size());
    std::map<int, std::set<int>> lists;  // by group
    for (const TableUse& use : engine_->table_uses()) {
      lists[blocks.group_of[Index(use.variable)]].insert(use.id_list);
    }
    for (const auto& [group, of_group] : lists) {
      std::vector<int32_t>& rows = blocks.rows[Index(group)];
      std::set<int32_t, std::greater<>> named;
      for (const int list : of_group) {
        const std::vector<int32_t>& ids = found.id_lists[Index(list)].ids;
        named.insert(ids.begin(), ids.end());
      }
      named.erase(-1);
      if (!apart) rows.push_back(0);
      if (!apart) rows.insert(rows.end(), named.begin(), named.end());
      for (const int list : of_group) {
        for (int32_t& id : blocks.batch.id_lists[Index(list)].ids) {
          if (id < 0) continue;
          if (apart) rows.push_back(id);
          const auto from = rows.begin() + (apart ? std::ssize(rows) - 1 : 1);
          id = static_cast<int32_t>(std::find(from, rows.end(), id) - rows.begin());
        }
      }
    }
    for (size_t v = 0; v < blocks.views.size(); ++v) {
      VariableView& view = blocks.views[v];
      if (blocks.group_of[v] < 0) continue;
      const std::vector<int32_t>& rows = blocks.rows[Index(blocks.group_of[v])];
      for (const int32_t id : rows) {
        // Tables of a group may differ in length: a row beyond a table's end is never read.
        const float* const row = view.data + std::min<int64_t>(id, view.rows - 1) * view.cols;
        blocks.memory[v].insert(blocks.memory[v].end(), row, row + view.cols);
      }
      view = {blocks.memory[v].data(), std::ssize(rows), view.cols};
    }
    return blocks;
  }
  static size_t Index(int i) { return static_cast<size_t>(i); }

  Engine* engine_ = nullptr;
  std::optional<TestWeights> weights_;
  features::FeatureBatch batch_;

 private:
  std::optional<Outcome> before_;
  static std::map<std::string, std::unique_ptr<Engine>>& Engines() {
    static auto* const kEngines = new std::map<std::string, std::unique_ptr<Engine>>;
    return *kEngines;
  }
};

TEST_P(EngineConformance, DescribesItsVariables) {
  std::set<std::string> names;
  std::set<int> used;
  for (const TableUse& use : engine_->table_uses()) {
    ASSERT_GE(use.variable, 0);
    ASSERT_LT(Index(use.variable), engine_->variables().size());
    EXPECT_TRUE(IsTable(Index(use.variable)));
    EXPECT_GE(use.id_list, 0);
    used.insert(use.variable);
  }
  int trained = 0;
  for (size_t i = 0; i < engine_->variables().size(); ++i) {
    const VariableSpec& spec = engine_->variables()[i];
    EXPECT_FALSE(spec.name.empty());
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name << " is there twice";
    for (const int64_t size : spec.shape) EXPECT_GE(size, 0) << spec.name;
    EXPECT_TRUE(spec.elements() > 0 || spec.growth) << spec.name;
    EXPECT_GE(spec.momentum, 0) << spec.name;
    EXPECT_LE(spec.momentum, 1) << spec.name;
    EXPECT_EQ(used.contains(static_cast<int>(i)), IsTable(i)) << spec.name;
    EXPECT_TRUE(!IsTable(i) || spec.shape.size() == 2) << spec.name;
    trained += spec.kind == VariableKind::kState ? 0 : 1;
  }
  EXPECT_GT(trained, 0);
  const VariableSpec* const before = engine_->variables().data();
  Step(batch_);
  EXPECT_EQ(engine_->variables().data(), before) << "callers keep references to them";
}

TEST_P(EngineConformance, DescribesItsLayers) {
  const std::span<const LayerInfo> layers = engine_->layers();
  for (size_t i = 0; i < layers.size(); ++i) {
    EXPECT_FALSE(layers[i].name.empty()) << i;
    EXPECT_FALSE(layers[i].op.empty()) << layers[i].name;
    for (const int read : layers[i].layers) {
      EXPECT_GE(read, 0) << layers[i].name;
      EXPECT_LT(read, static_cast<int>(i)) << layers[i].name << " reads a later layer";
    }
    for (const int variable : layers[i].variables) {
      EXPECT_LT(Index(variable), engine_->variables().size()) << layers[i].name;
    }
  }
  EXPECT_TRUE(layers.empty() || layers.back().width == engine_->logits_dimension());
}

TEST_P(EngineConformance, FindsTheIdsThatItsTablesAreReadBy) {
  const features::FeatureBatch found = WithIds();
  for (const TableUse& use : engine_->table_uses()) {
    ASSERT_LT(Index(use.id_list), found.id_lists.size());
    const int64_t rows = engine_->variables()[Index(use.variable)].shape[0];
    const std::vector<int32_t>& ids = found.id_lists[Index(use.id_list)].ids;
    EXPECT_THAT(ids, testing::Each(testing::AllOf(testing::Ge(-1), testing::Lt(rows))));
    EXPECT_EQ(found.id_lists[Index(use.id_list)].begin(0), 0u);
    EXPECT_EQ(found.id_lists[Index(use.id_list)].end(batch_.rows - 1), ids.size());
  }
  ExpectSame(Step(found), Step(batch_));
  const Forward with = Predict(found), without = Predict(batch_);
  EXPECT_EQ(with.logits, without.logits);
  EXPECT_EQ(with.loss_sum, without.loss_sum);
}

TEST_P(EngineConformance, PredictsTheSameEachTime) {
  const Forward first = Predict(batch_);
  if (engine_->logits_dimension() > 0) {  // otherwise predictions may have any length
    EXPECT_EQ(first.logits.size(), Index(batch_.rows) * Index(engine_->logits_dimension()));
  }
  EXPECT_TRUE(std::isfinite(first.loss_sum));
  // Other calls in between must not matter.
  for (const int64_t step : {0, 1}) {
    Step(batch_, {.step = step});
    Predict(GetRows(batch_, 1, 3));
    const Forward again = Predict(batch_);
    EXPECT_EQ(again.logits, first.logits);
    EXPECT_EQ(again.loss_sum, first.loss_sum);
    EXPECT_EQ(again.metric_states, first.metric_states);
    ASSERT_EQ(again.predictions.size(), first.predictions.size());
    for (size_t i = 0; i < first.predictions.size(); ++i) {
      EXPECT_EQ(again.predictions[i].shape, first.predictions[i].shape);
      EXPECT_EQ(again.predictions[i].bytes, first.predictions[i].bytes);
    }
  }
}

TEST_P(EngineConformance, PredictsEachRowByItself) {
  const Forward all = Predict(batch_);
  const size_t width = all.logits.size() / Index(batch_.rows);
  double loss_sum = 0;
  std::set<std::vector<float>> different;
  for (int row = 0; row < batch_.rows; ++row) {
    const Forward one = Predict(GetRows(batch_, row, row + 1));
    const auto begin = all.logits.begin() + static_cast<int64_t>(Index(row) * width);
    ExpectNear<float>(StrCat("row ", row), one.logits,
                      {begin, begin + static_cast<int64_t>(width)});
    different.insert(one.logits);
    loss_sum += one.loss_sum;
  }
  EXPECT_GT(different.size(), 1u) << "all rows have the same prediction, so nothing was tested";
  const bool adds_up = GetParam().is_mean || !GetParam().evaluates_as_keras;
  if (GetParam().is_separable && adds_up) {
    ExpectNear<double>("loss_sum", {all.loss_sum}, {loss_sum});
  }
}

TEST_P(EngineConformance, PredictsWithoutLabels) {
  features::FeatureBatch batch = batch_;
  // The loss of a model without labels depends on its inputs alone.
  if (batch.labels.empty() && batch.raw.size() == GetParam().input_columns) return;
  batch.labels.clear();
  batch.raw.resize(GetParam().input_columns);
  const Forward with = Predict(batch_), without = Predict(batch);
  EXPECT_EQ(without.loss_sum, 0);
  EXPECT_NE(with.loss_sum, 0);
  EXPECT_TRUE(without.metric_states.empty());
  ExpectNear("logits", without.logits, with.logits);
}

TEST_P(EngineConformance, PredictsWithTheTrainingLossWhereBothAreDefinedAlike) {
  if (GetParam().is_random || GetParam().batch_norm != EngineMember::BatchNorm::kNone) return;
  const bool as_keras = GetParam().evaluates_as_keras;
  const double rows = GetParam().is_mean || as_keras ? batch_.rows : 1;
  const StepResult trained = Step(batch_).result;
  ExpectNear<double>("loss", {Predict(batch_).loss_sum / rows},
                     {as_keras ? trained.loss : trained.data_loss});
}

TEST_P(EngineConformance, ForgetsFrozenWeightsWithTheNextStepOrFreeze) {
  const Forward plain = Predict(batch_);
  ASSERT_TRUE(engine_->Freeze(weights_->views()).ok());
  ExpectNear("frozen", Predict(batch_).logits, plain.logits);
  // Freeze does not apply to other memory.
  TestWeights others(*engine_, 0.25);
  std::swap(others, *weights_);
  const Forward other = Predict(batch_);
  EXPECT_NE(other.logits, plain.logits);
  std::swap(others, *weights_);
  const auto change = [&] {
    for (size_t i = 0; i < engine_->variables().size(); ++i) weights_->at(i) = others.at(i);
  };
  change();
  ASSERT_TRUE(engine_->Freeze(weights_->views()).ok());
  ExpectNear("frozen again", Predict(batch_).logits, other.logits);
  weights_.emplace(*engine_);
  ASSERT_TRUE(engine_->Freeze(weights_->views()).ok());
  Step(batch_);
  change();
  EXPECT_EQ(Predict(batch_).logits, other.logits);
}

}  // namespace muster::engine

#include "muster/engine/engine_conformance_refusals.h"
#include "muster/engine/engine_conformance_step.h"
