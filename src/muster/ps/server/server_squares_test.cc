// Servers add, scale and measure gradients whose rows have squares.
#include <cmath>

#include "muster/ps/server/server_state_test_support.h"

namespace muster::ps {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;
using SquaresClip = optim::ClipSpec::Kind;

// The table is trained by Keras's Adagrad at rate 1, whose accumulator is the sum of squares.
class ServerSquaresTest : public ServerStateTest {
 protected:
  ServerSquaresTest() {
    optim::OptimizerSpec adagrad;
    adagrad.kind = "adagrad";
    adagrad.rule = optim::OptimizerSpec::Rule::kKeras;
    adagrad.learning_rate = 1;
    adagrad.parameters["epsilon"] = 1e-30;
    adagrad_ = optim::NewOptimizer(adagrad).value();
    variables_[1].optimizer = adagrad_.get();
  }
  static std::vector<float> Accumulators(ServerState& state, int64_t count) {
    const auto values =
        state.OnFetch(1, {.generation = 1, .variable = 1, .slot = 0, .count = count});
    EXPECT_TRUE(values.ok()) << values.status();
    return {values->begin(), values->end()};
  }
  // `values` has a sum and a square for each row.
  static Bytes SquaresPush(uint32_t rows_of_batch, std::vector<int32_t> rows,
                           std::vector<float> values) {
    Bytes bytes;
    Print(Push{.generation = 1,
               .rows = rows_of_batch,
               .tables = {{.variable = 1, .rows = rows, .values = values}}},
          &bytes);
    return bytes;
  }
  std::unique_ptr<optim::Optimizer> adagrad_;
};

TEST_F(ServerSquaresTest, ARowIsFollowedByItsSquares) {
  EXPECT_EQ(variables_[1].gradient_cols(), 2);
  EXPECT_EQ(variables_[0].gradient_cols(), 2) << "a dense variable has no squares";
  const auto state = New(/*synchronous=*/false);
  const absl::Status refused = state->OnPush(1, TablePush(0, {1}, {3}));
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ToStd(refused.message()),
              HasSubstr("1 floats for 1 rows of table, which have 2 each"));
  ASSERT_TRUE(state->OnPush(1, TablePush(0, {1, 3}, {3, 4, 2, 4})).ok());
  EXPECT_THAT(Accumulators(*state, 4), ElementsAre(0, 4, 0, 4));
  EXPECT_THAT(Weights(*state, 1, 4), ElementsAre(0, -1.5, 0, -1));
}

// Two replicas with halves of a batch do the same as one replica with the whole batch.
TEST_F(ServerSquaresTest, HalvesOfABatchGiveTheSameAsTheBatch) {
  const auto whole = New(/*synchronous=*/true, 0, 1, /*replicas=*/1);
  ASSERT_TRUE(whole->OnPush(1, SquaresPush(4, {2, 0, 3}, {2.5f, 3.25f, 1, 1, 0.5f, 0.25f})).ok());
  for (int again = 0; again < 2; ++again) {
    const auto halves = New(/*synchronous=*/true);
    ASSERT_TRUE(halves->OnPush(2, SquaresPush(2, {2, 3}, {1, 1, 0.5f, 0.25f})).ok());
    ASSERT_TRUE(halves->OnPush(1, SquaresPush(2, {2, 0}, {1.5f, 2.25f, 1, 1})).ok());
    ASSERT_TRUE(Pushes(*halves, 1));
    EXPECT_EQ(Accumulators(*halves, 4), Accumulators(*whole, 4));
    EXPECT_EQ(Weights(*halves, 1, 4), Weights(*whole, 1, 4));
  }
  EXPECT_THAT(Accumulators(*whole, 4), ElementsAre(1, 0, 3.25, 0.25));
}

// Batches of 1 and of 3 rows: an entry of the first batch counts a quarter in the mean.
TEST_F(ServerSquaresTest, AMeanScalesEntries) {
  aggregate_ = 2;
  const auto state = New(/*synchronous=*/true, 0, 1, /*replicas=*/3);
  ASSERT_TRUE(state->OnPush(1, SquaresPush(1, {0, 1}, {4, 16, 2, 4})).ok());
  ASSERT_TRUE(state->OnPush(3, SquaresPush(3, {1}, {4, 16})).ok());
  ASSERT_TRUE(Pushes(*state, 1));
  EXPECT_THAT(Accumulators(*state, 4), ElementsAre(1, 0.25 + 9, 0, 0));
  EXPECT_THAT(Weights(*state, 1, 2), ElementsAre(-1, FloatEq(-3.5f / std::sqrt(9.25f))));
}

TEST_F(ServerSquaresTest, ANormIsTakenOverEntries) {
  for (const SquaresClip kind : {SquaresClip::kNorm, SquaresClip::kGlobalNorm}) {
    clip_ = {.kind = kind, .limit = 2.5};
    const auto state = New(/*synchronous=*/true, 0, 1, /*replicas=*/1);
    ASSERT_TRUE(state->OnPush(1, SquaresPush(1, {0, 2}, {1, 9, 5, 16})).ok());
    EXPECT_THAT(Accumulators(*state, 3), ElementsAre(2.25, 0, 4));
    EXPECT_THAT(Weights(*state, 1, 3), ElementsAre(FloatEq(-0.5f / 1.5f), 0, FloatEq(-1.25f)));
  }
  // On a server other than the lead.
  const auto other = New(/*synchronous=*/true, /*server=*/1, /*servers=*/2, /*replicas=*/1);
  ASSERT_TRUE(other->OnPush(1, SquaresPush(1, {0, 1}, {1, 9, 5, 16})).ok());
  EXPECT_THAT(*other->OnMeasure(1, {.generation = 1, .sequence = 1, .step = 1}),
              ElementsAre(0, 25));
}

}  // namespace
}  // namespace muster::ps
