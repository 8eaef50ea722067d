// Part of engine_conformance.h: the loss and the gradients of a step.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "muster/engine/engine_conformance.h"

namespace muster::engine {

// Checks that each call gives a variable what engine.h allows for its kind.
class CheckingSink final : public GradientSink {
 public:
  CheckingSink(const Engine& engine, std::span<const VariableView> views, bool with_squares)
      : specs_(engine.variables()), views_(views), with_squares_(with_squares) {}
  bool WantsSquares(int) const override { return with_squares_; }
  void Dense(int variable, std::span<const float> gradient) override {
    const VariableSpec* const spec = Record(variable);
    if (spec == nullptr) return;
    EXPECT_NE(spec->kind, VariableKind::kState) << spec->name;
    EXPECT_EQ(std::ssize(gradient), spec->elements()) << spec->name;
    CheckFinite(*spec, gradient);
  }
  void Rows(int variable, std::span<const int32_t> rows, std::span<const float> gradient) override {
    const VariableSpec* const spec = Record(variable);
    if (spec == nullptr) return;
    EXPECT_EQ(spec->kind, VariableKind::kTable) << spec->name;
    const VariableView& view = views_[static_cast<size_t>(variable)];
    EXPECT_EQ(std::ssize(gradient), std::ssize(rows) * view.cols * (with_squares_ ? 2 : 1))
        << spec->name;
    EXPECT_THAT(rows, testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(view.rows))));
    EXPECT_EQ(std::set<int32_t>(rows.begin(), rows.end()).size(), rows.size())
        << spec->name << ": a row is given twice";
    CheckFinite(*spec, gradient);
  }
  void Statistic(int variable, std::span<const float> value) override {
    const VariableSpec* const spec = Record(variable);
    if (spec == nullptr) return;
    EXPECT_EQ(spec->kind, VariableKind::kState) << spec->name;
    EXPECT_EQ(std::ssize(value), spec->elements()) << spec->name;
    CheckFinite(*spec, value);
  }

  std::vector<int> order;

 private:
  const VariableSpec* Record(int variable) {
    order.push_back(variable);
    const bool there = variable >= 0 && static_cast<size_t>(variable) < specs_.size();
    EXPECT_TRUE(there) << variable;
    return there ? &specs_[static_cast<size_t>(variable)] : nullptr;
  }
  static void CheckFinite(const VariableSpec& spec, std::span<const float> values) {
    EXPECT_TRUE(std::ranges::all_of(values, [](float v) { return std::isfinite(v); })) << spec.name;
  }

  std::span<const VariableSpec> specs_;
  std::span<const VariableView> views_;
  const bool with_squares_;
};

TEST_P(EngineConformance, GivesEachVariableOnceInTheSameOrder) {
  std::vector<int> order;
  const features::FeatureBatch parts[] = {batch_, GetRows(batch_, 0, 1), GetRows(batch_, 1, 4),
                                          GetRows(batch_, 0, 0), batch_};
  for (const features::FeatureBatch& part : parts) {
    for (const bool squares : {false, true}) {
      if (squares && !GetParam().gives_squares) continue;
      CheckingSink sink(*engine_, weights_->views(), squares);
      const auto result =
          engine_->Step(weights_->views(), part, {.step = 3, .denominator = 30}, sink);
      ASSERT_TRUE(result.ok()) << part.rows << " rows: " << result.status();
      if (order.empty()) order = sink.order;
      EXPECT_EQ(sink.order, order) << part.rows << " rows";
    }
  }
  EXPECT_EQ(order.size(), engine_->variables().size());
  EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), order.size());
}

// A sink may update a variable at once: that must not affect the rest of the step.
TEST_P(EngineConformance, DoesNotReadVariablesWhoseGradientItGave) {
  class Spoiler final : public GradientSink {
   public:
    Spoiler(std::span<const VariableView> views, bool spoils) : views_(views), spoils_(spoils) {}
    void Dense(int variable, std::span<const float> values) override { Keep(variable, values); }
    void Rows(int variable, std::span<const int32_t>, std::span<const float> values) override {
      Keep(variable, values);
    }
    void Statistic(int variable, std::span<const float> value) override { Keep(variable, value); }
    std::vector<float> given;

   private:
    void Keep(int variable, std::span<const float> values) {
      given.insert(given.end(), values.begin(), values.end());
      const VariableView& view = views_[static_cast<size_t>(variable)];
      if (spoils_) std::fill_n(view.data, view.rows * view.cols, 1e30f);
    }
    std::span<const VariableView> views_;
    const bool spoils_;
  };
  Spoiler tame(weights_->views(), false), wild(weights_->views(), true);
  const auto want = engine_->Step(weights_->views(), batch_, {}, tame);
  const auto got = engine_->Step(weights_->views(), batch_, {}, wild);
  ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status();
  EXPECT_EQ(got->loss, want->loss);
  EXPECT_EQ(wild.given, tame.given);
}

TEST_P(EngineConformance, IsAFunctionOfWeightsBatchSeedStepAndReplica) {
  const StepContext context{.seed = 7, .step = 11, .replica = 2};
  const std::unique_ptr<Engine> other = Make();
  ASSERT_NE(other, nullptr);
  const Outcome first = GetStep(*other, weights_->views(), batch_, context);
  ASSERT_FALSE(first.given.order.empty());
  // The result must not depend on what was computed before, with batches of any size.
  for (const int rows : {4, 1, 3}) {
    Step(GetRows(batch_, 0, rows), {.seed = 8, .step = 2});
    ExpectSame(Step(batch_, context), first);
  }
  for (const StepContext& changed :
       {StepContext{.seed = 8, .step = 11, .replica = 2},
        StepContext{.seed = 7, .step = 12, .replica = 2},
        StepContext{.seed = 7, .step = int64_t{11} << 32, .replica = 2},
        StepContext{.seed = uint64_t{7} << 32, .step = 11, .replica = 2},
        StepContext{.seed = 7, .step = 11, .replica = 3}}) {
    const Outcome outcome = Step(batch_, changed);
    if (!GetParam().is_random) ExpectSame(outcome, first);
    EXPECT_EQ(outcome.given.dense == first.given.dense, !GetParam().is_random);
  }
}

// The difference quotient of the loss along a direction is the projection of the gradient on that
// direction. If a difference spans a kink of the loss (a relu), two step lengths disagree.
TEST_P(EngineConformance, GradientsAreThoseOfTheLoss) {
  if (GetParam().precision > 1e-4) return;  // too coarse for differences
  const StepContext context{.seed = 5, .step = 3};
  const RecordingSink given = Step(batch_, context).given;
  RandomStream random(20261122, RandomPurpose::kSampleData, 4);
  int trained = 0, moved = 0;
  for (size_t v = 0; v < engine_->variables().size(); ++v) {
    const VariableSpec& spec = engine_->variables()[v];
    if (spec.kind == VariableKind::kState) continue;
    ++trained;
    ASSERT_TRUE(given.dense.contains(spec.name)) << spec.name;
    const std::vector<float>& gradient = given.dense.find(spec.name)->second;
    const std::vector<float> before = weights_->at(v);
    int smooth = 0;
    double slope = 0;
    for (int n = 0; n < 4; ++n) {
      // The first direction is the gradient itself.
      std::vector<double> direction(gradient.begin(), gradient.end());
      if (n > 0) std::ranges::generate(direction, [&] { return random.Normal(); });
      double length = 0, expected = 0;
      for (const double d : direction) length += d * d;
      if (length == 0) continue;
      for (size_t i = 0; i < direction.size(); ++i) {
        direction[i] /= std::sqrt(length);
        expected += direction[i] * gradient[i];
      }
      if (n == 0) slope = expected;
      const auto difference = [&](double step) {
        double loss[2] = {};
        for (const int side : {0, 1}) {
          for (size_t i = 0; i < before.size(); ++i) {
            const double by = (side == 0 ? -step : step) * direction[i];
            weights_->at(v)[i] = static_cast<float>(before[i] + by);
          }
          loss[side] = Step(batch_, context).result.loss;
        }
        weights_->at(v) = before;
        return (loss[1] - loss[0]) / (2 * step);
      };
      const double coarse = difference(1e-2), fine = difference(2e-3);
      const double kink = std::fabs(coarse - fine);
      if (kink < 1e-3 + 1e-2 * std::fabs(slope)) ++smooth;
      EXPECT_NEAR(expected, fine, 1e-3 + 5e-3 * std::fabs(slope) + 2 * kink)
          << spec.name << " in direction " << n;
    }
    if (slope > 1e-2 && smooth >= 2) ++moved;
  }
  EXPECT_GE(2 * moved, trained) << "most gradients are nearly 0, so little was tested";
}

TEST_P(EngineConformance, TheDenominatorDividesLossAndGradients) {
  const double rows = batch_.rows;
  const Outcome own = Step(batch_), same = Step(batch_, {.denominator = rows}),
                half = Step(batch_, {.denominator = 2 * rows});
  ExpectNear<double>("loss", {same.result.loss}, {own.result.loss});
  ExpectNear(same.given.dense, own.given.dense);
  const double by = GetParam().is_mean ? 2 : 1;
  ExpectNear<double>("loss", {half.result.loss * by}, {own.result.loss});
  ExpectNear<double>("data_loss", {half.result.data_loss * by}, {own.result.data_loss});
  RecordingSink::Values twice = half.given.dense;
  for (auto& [name, values] : twice) {
    for (float& value : values) value *= static_cast<float>(by);
  }
  ExpectNear(twice, own.given.dense);
  ExpectNear(half.given.statistics, own.given.statistics);
}

TEST_P(EngineConformance, PartsOfABatchAddUpToIt) {
  const EngineMember& member = GetParam();
  const bool with_sums = member.batch_norm == EngineMember::BatchNorm::kSynchronized;
  const bool own_rows = member.batch_norm == EngineMember::BatchNorm::kOwnRows;
  if (member.is_random || own_rows || !member.is_separable) return;
  const Outcome whole = Step(batch_);
  const std::unique_ptr<Engine> other = with_sums ? Make() : nullptr;
  for (const int cut : {0, 1, batch_.rows / 2}) {
    SCOPED_TRACE(StrCat(cut, " rows and the others"));
    const features::FeatureBatch parts[] = {GetRows(batch_, 0, cut),
                                            GetRows(batch_, cut, batch_.rows)};
    StepContext context{.denominator = static_cast<double>(batch_.rows)};
    std::optional<Outcome> outcomes[2];
    if (with_sums) {
      SumsOfTwo sums;
      std::jthread second([&, context]() mutable {
        context.replica_sums = &sums.sides[1];
        outcomes[1].emplace(GetStep(*other, weights_->views(), parts[1], context));
      });
      context.replica_sums = &sums.sides[0];
      outcomes[0].emplace(Step(parts[0], context));
    } else {
      for (const int i : {0, 1}) outcomes[i].emplace(Step(parts[i], context));
    }
    const RecordingSink &a = outcomes[0]->given, &b = outcomes[1]->given;
    EXPECT_EQ(a.order, b.order);
    ExpectNear<double>("loss", {outcomes[0]->result.loss + outcomes[1]->result.loss},
                       {whole.result.loss});
    RecordingSink::Values sums = a.dense, statistics = a.statistics;
    for (auto& [name, values] : sums) {
      const std::vector<float>& others = b.dense.find(name)->second;
      for (size_t i = 0; i < values.size(); ++i) values[i] += others[i];
    }
    ExpectNear(sums, whole.given.dense);
    // Statistics are weighted by rows, as trainers take their mean.
    const float share = static_cast<float>(cut) / static_cast<float>(batch_.rows);
    for (auto& [name, values] : statistics) {
      const std::vector<float>& others = b.statistics.find(name)->second;
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = values[i] * share + others[i] * (1 - share);
      }
    }
    ExpectNear(statistics, whole.given.statistics);
  }
}

TEST_P(EngineConformance, AnEmptyPartGivesZeros) {
  const Outcome none = Step(GetRows(batch_, 0, 0), {.denominator = 5});
  EXPECT_EQ(none.result.loss, 0);
  EXPECT_EQ(none.result.data_loss, 0);
  EXPECT_EQ(none.given.order, Step(batch_).given.order) << "ranks would disagree about what to sum";
  for (const auto& [name, values] : none.given.dense) {
    EXPECT_THAT(values, testing::Each(0)) << name;
  }
  for (const auto& [name, rows] : none.given.rows) EXPECT_TRUE(rows.empty()) << name;
  for (const auto& [name, values] : none.given.statistics) {
    EXPECT_THAT(values, testing::Each(0)) << name;
  }
}

TEST_P(EngineConformance, RowsAreInOrderOfFirstAppearance) {
  const features::FeatureBatch found = WithIds();
  const Outcome outcome = Step(found);
  for (size_t v = 0; v < engine_->variables().size(); ++v) {
    const std::string& name = engine_->variables()[v].name;
    if (!outcome.given.rows.contains(name)) continue;
    std::set<int> lists;
    for (const TableUse& use : engine_->table_uses()) {
      if (Index(use.variable) == v) lists.insert(use.id_list);
    }
    std::vector<int32_t> expected;
    for (const int list : lists) {
      for (const int32_t id : found.id_lists[Index(list)].ids) {
        if (id >= 0 && !std::ranges::count(expected, id)) expected.push_back(id);
      }
    }
    EXPECT_EQ(outcome.given.rows.find(name)->second, expected) << name;
  }
}

// If a block has a row for each appearance of an id, each gradient is that of one appearance.
TEST_P(EngineConformance, ARowsGradientIsTheSumOfItsAppearances) {
  const features::FeatureBatch found = WithIds();
  const bool squares = GetParam().gives_squares;
  const Blocks blocks = GetBlocks(found, /*apart=*/true);
  Outcome whole = GetStep(*engine_, weights_->views(), found, {.seed = 3}, squares);
  Outcome each = GetStep(*engine_, blocks.views, blocks.batch, {.seed = 3}, squares);
  ExpectNear<double>("loss", {each.result.loss}, {whole.result.loss});
  bool repeated = false;
  for (const auto& [name, rows] : whole.given.rows) {
    const size_t v = weights_->GetIndex(name);
    const std::vector<int32_t>& entries = each.given.rows[name];
    repeated |= entries.size() > rows.size();
    const auto cols = static_cast<size_t>(blocks.views[v].cols);
    std::vector<float> sums(whole.given.dense[name].size()), roots(rows.size() * cols);
    for (const int32_t entry : entries) {
      const int32_t row = blocks.GetRow(v, entry);
      const auto place = std::ranges::find(rows, row);
      ASSERT_NE(place, rows.end()) << name << ": row " << row << " has no gradient";
      float* const sum = &sums[Index(row) * cols];
      float* const square = &roots[static_cast<size_t>(place - rows.begin()) * cols];
      for (size_t i = 0; i < cols; ++i) {
        const float g = each.given.dense[name][Index(entry) * cols + i];
        sum[i] += g;
        square[i] += g * g;
      }
    }
    ExpectNear(name, whole.given.dense[name], sums);
    if (!squares) continue;
    // they are small, so their roots are compared
    std::vector<float> got = whole.given.squares[name];
    for (std::vector<float>* const values : {&got, &roots}) {
      for (float& value : *values) value = std::sqrt(value);
    }
    ExpectNear(name + ": squares", got, roots);
  }
  EXPECT_EQ(repeated, !engine_->table_uses().empty()) << "no id came twice, so nothing was tested";
}

TEST_P(EngineConformance, TablesMayBeBlocks) {
  const features::FeatureBatch found = WithIds();
  const Blocks blocks = GetBlocks(found, /*apart=*/false);
  Outcome whole = Step(found), block = GetStep(*engine_, blocks.views, blocks.batch);
  for (auto& [name, rows] : block.given.rows) {
    const size_t v = weights_->GetIndex(name);
    std::vector<float> spread(whole.given.dense[name].size());
    for (int32_t& row : rows) {
      const int64_t cols = blocks.views[v].cols;
      const auto from = block.given.dense[name].begin() + row * cols;
      row = blocks.GetRow(v, row);
      std::copy_n(from, cols, spread.begin() + row * cols);
    }
    block.given.dense[name] = spread;
  }
  ExpectSame(block, whole);
}

}  // namespace muster::engine
