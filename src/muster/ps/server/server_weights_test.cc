#include "muster/ps/server/server_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "muster/base/random.h"

namespace muster::ps {
namespace {

constexpr int64_t kRows = 20'000;
constexpr int64_t kDense = 150'000;
constexpr int kSteps = 3;

struct Case {
  const char* kind;
  int64_t cols;
  bool lazy = false;
  float clip = 0;
};

// The weights and slots of a server with so many threads after some steps.
class Steps {
 public:
  Steps(const Case& one, int threads) : one_(one) {
    optim::OptimizerSpec spec = optim::DefaultOptimizer(one.kind);
    spec.lazy = one.lazy;
    optimizer_ = optim::NewOptimizer(spec).value();
    variables_ = {{.name = "dense",
                   .rows = 1,
                   .cols = kDense,
                   .optimizer = optimizer_.get(),
                   .clip = one.clip},
                  {.name = "table",
                   .kind = Variable::Kind::kTable,
                   .rows = kRows,
                   .cols = one.cols,
                   .optimizer = optimizer_.get(),
                   .clip = one.clip}};
    placement_ = std::make_unique<Placement>(variables_, 1);
    weights_ = std::make_unique<ServerWeights>(variables_, *placement_, 0, threads);
    for (int64_t step = 0; step < kSteps; ++step) Step(step);
  }

  // All weights, and all slots.
  std::vector<float> GetState() const {
    std::vector<float> state;
    for (uint32_t variable = 0; variable < 2; ++variable) {
      const int slots = static_cast<int>(optimizer_->slots().size());
      for (int slot = -1; slot < slots; ++slot) {
        const int64_t count = variable == 0 ? kDense : kRows * one_.cols;
        const auto part =
            weights_->Fetch({.variable = variable, .slot = slot, .first = 0, .count = count});
        EXPECT_TRUE(part.ok()) << part.status();
        state.insert(state.end(), part->begin(), part->end());
      }
    }
    return state;
  }
  // What a pull of every third row gives.
  std::vector<float> Pull() const {
    std::vector<int32_t> wanted;
    for (int32_t row = 0; row < kRows; row += 3) wanted.push_back(row);
    const TableRows table = {.variable = 1, .rows = wanted};
    std::vector<float> dense, rows;
    weights_->Read({&table, 1}, &dense, &rows);
    dense.insert(dense.end(), rows.begin(), rows.end());
    return dense;
  }

 private:
  void Step(int64_t step) {
    RandomStream random(1, RandomPurpose::kSampleData, static_cast<uint64_t>(step));
    const auto draw = [&](size_t count) {
      std::vector<float> values(count);
      for (float& value : values) {
        value = static_cast<float>(random.Below(2001)) / 1000.0f - 1.0f;
      }
      return values;
    };
    std::vector<int32_t> rows;
    for (int32_t row = 0; row < kRows; ++row) {
      if (random.Below(4) != 0) rows.push_back(row);
    }
    const std::vector<float> dense = draw(kDense);
    const std::vector<float> values = draw(rows.size() * static_cast<size_t>(one_.cols));
    const std::vector<uint32_t> given = {1, 0};
    const Gradient gradient = {.given = given,
                               .dense = dense,
                               .tables = {{.variable = 1, .rows = rows, .values = values}}};
    ASSERT_TRUE(weights_->Check(gradient).ok());
    weights_->Apply(gradient, step);
  }

  const Case one_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  Variables variables_;
  std::unique_ptr<Placement> placement_;
  std::unique_ptr<ServerWeights> weights_;
};

class ServerThreadsTest : public ::testing::TestWithParam<Case> {};

TEST_P(ServerThreadsTest, NoByteDependsOnTheirNumber) {
  const Steps alone(GetParam(), 1);
  for (const int threads : {2, 3}) {
    const Steps several(GetParam(), threads);
    EXPECT_TRUE(several.GetState() == alone.GetState()) << threads << " threads";
    EXPECT_TRUE(several.Pull() == alone.Pull()) << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, ServerThreadsTest,
                         ::testing::Values(Case{.kind = "adagrad", .cols = 7},
                                           Case{.kind = "ftrl", .cols = 5},
                                           Case{.kind = "adam", .cols = 8},
                                           Case{.kind = "adam", .cols = 8, .lazy = true},
                                           Case{.kind = "rmsprop", .cols = 6, .clip = 0.5f},
                                           Case{.kind = "sgd", .cols = 16}),
                         [](const auto& one) {
                           return std::string(one.param.kind) + (one.param.lazy ? "_lazy" : "");
                         });

}  // namespace
}  // namespace muster::ps
