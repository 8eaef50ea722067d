// ServerState's rounds that are clipped by a norm, of which each server knows only a part.
#include "muster/ps/server/server_state_test_support.h"

namespace muster::ps {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::IsEmpty;
using Kind = optim::ClipSpec::Kind;

class ServerNormsTest : public ServerStateTest {
 protected:
  ServerNormsTest() { clip_ = {.kind = Kind::kGlobalNorm, .limit = 5}; }

  static Measure MakeMeasure(int64_t sequence, int64_t step) {
    return {.generation = 1, .sequence = sequence, .step = step};
  }
};

TEST_F(ServerNormsTest, OneServerScalesAlone) {
  const auto state = New(/*synchronous=*/true);
  ASSERT_TRUE(state->OnPush(1, DensePush(0, {3, 0})).ok());
  ASSERT_TRUE(state->OnPush(2, DensePush(0, {3, 8})).ok());
  ASSERT_TRUE(Pushes(*state, 1));
  // (6, 8) has the norm 10.
  EXPECT_THAT(Weights(*state, 0, 2), ElementsAre(-3, -4));
  // A sum with a smaller norm is unchanged.
  ASSERT_TRUE(state->OnPush(1, DensePush(1, {1, 0})).ok());
  ASSERT_TRUE(state->OnPush(2, DensePush(1, {0, 1})).ok());
  EXPECT_THAT(Weights(*state, 0, 2), ElementsAre(-4, -5));
}

TEST_F(ServerNormsTest, TheLeadAppliesARoundOnceItHasAllSquares) {
  const auto state = New(/*synchronous=*/true, /*server=*/0, /*servers=*/2);
  ASSERT_TRUE(state->OnPush(1, DensePush(0, {3, 0})).ok());
  ASSERT_TRUE(state->OnPush(2, DensePush(0, {3, 0}, "b")).ok());
  ASSERT_TRUE(Pushes(*state, 1)) << "the round counts";
  EXPECT_EQ(pushed_.step, 1);
  EXPECT_EQ(Greet(*state, 9, 1, 2)->position, "b");
  EXPECT_THAT(Weights(*state, 0, 2), ElementsAre(0, 0));
  // Before the round is applied, the lead gives no weights and no state to save.
  const Pull next = {.sequence = 1, .step = 1};
  ASSERT_TRUE(Pulls(*state, 1, next));
  EXPECT_EQ(pulled_.settle, 1u);
  EXPECT_THAT(pulled_.dense, IsEmpty());
  Held held;
  ASSERT_TRUE(state->OnHold(1, {.generation = 1, .step = 1}).ok());
  ASSERT_TRUE(*state->AnswerHold(1, {.generation = 1, .step = 1}, &held));
  EXPECT_EQ(held.settle, 1u);

  EXPECT_EQ(state->OnSettle(1, {.generation = 1, .step = 1, .squares = {1}}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(state->OnSettle(1, {.generation = 1, .step = 0, .squares = {1, 1}}).ok());
  EXPECT_THAT(Weights(*state, 0, 2), ElementsAre(0, 0)) << "of another step";
  for (int times = 0; times < 2; ++times) {
    ASSERT_TRUE(state->OnSettle(1, {.generation = 1, .step = 1, .squares = {0, 64}}).ok());
    EXPECT_THAT(Weights(*state, 0, 2), ElementsAre(-3, 0));
  }
  ASSERT_TRUE(*state->AnswerHold(1, {.generation = 1, .step = 1}, &held));
  EXPECT_EQ(held.settle, 0u);
  EXPECT_THAT(held.word.scales, ElementsAre(0.5f, 0.5f));
}

TEST_F(ServerNormsTest, EachVariableCanBeClippedByItsOwnNorm) {
  clip_.kind = Kind::kNorm;
  const auto state = New(/*synchronous=*/true, 0, 2, /*replicas=*/1);
  ASSERT_TRUE(state->OnPush(1, DensePush(0, {6, 8})).ok());
  ASSERT_TRUE(state->OnSettle(1, {.generation = 1, .step = 1, .squares = {0, 9}}).ok());
  EXPECT_THAT(Weights(*state, 0, 2), ElementsAre(-3, -4));
}

TEST_F(ServerNormsTest, OtherServersMeasureAndScaleAsTheLeadSays) {
  const auto state = New(/*synchronous=*/true, /*server=*/1, /*servers=*/2);
  ASSERT_TRUE(state->OnPush(1, TablePush(0, {0, 1}, {1, 2})).ok());
  EXPECT_EQ(state->OnMeasure(1, MakeMeasure(1, 1)).status().code(), StatusCode::kAborted)
      << "the round is not complete";
  ASSERT_TRUE(state->OnPush(2, TablePush(0, {1}, {2})).ok());
  EXPECT_THAT(*state->OnMeasure(1, MakeMeasure(1, 1)), ElementsAre(0, 17));
  EXPECT_EQ(state->OnMeasure(1, MakeMeasure(2, 2)).status().code(), StatusCode::kAborted);
  Pull pull = {.generation = 1, .sequence = 1, .step = 1};
  EXPECT_EQ(state->OnPull(1, pull).code(), StatusCode::kInvalidArgument) << "without scales";
  pull.word.scales = {1, 0.5};
  ASSERT_TRUE(state->OnPull(1, pull).ok());
  EXPECT_THAT(Weights(*state, 1, 2), ElementsAre(-0.5, -2));
  EXPECT_THAT(*state->OnMeasure(2, MakeMeasure(1, 1)), IsEmpty())
      << "a late replica has nothing to settle";
}

TEST_F(ServerNormsTest, WithBackupReplicasTheMeanOfTheCountedBatchesIsMeasured) {
  aggregate_ = 1;
  const auto state = New(/*synchronous=*/true, /*server=*/1, /*servers=*/2);
  ASSERT_TRUE(state->OnPush(1, TablePush(0, {0, 1}, {1, 2})).ok());
  ASSERT_TRUE(state->OnPush(2, TablePush(0, {1}, {7})).ok());
  Measure measure = MakeMeasure(1, 1);
  measure.word.counted = {0, -1};
  EXPECT_THAT(*state->OnMeasure(1, measure), ElementsAre(0, 5));
  Pull pull = {.generation = 1, .sequence = 1, .step = 1, .word = measure.word};
  pull.word.scales = {1, 2};
  ASSERT_TRUE(state->OnPull(2, pull).ok());
  EXPECT_THAT(Weights(*state, 1, 2), ElementsAre(-2, -4));
}

}  // namespace
}  // namespace muster::ps
