// ServerState's steps with backup replicas: 2 of 3 pushes make a step.
#include "muster/ps/server/server_state_test_support.h"

namespace muster::ps {
namespace {

using absl::StatusCode;
using testing::ElementsAre;

class ServerBackupsTest : public ServerStateTest {
 protected:
  ServerBackupsTest() { aggregate_ = 2; }

  std::unique_ptr<ServerState> NewOfThree(int server = 0, int servers = 1) {
    return New(/*synchronous=*/true, server, servers, /*replicas=*/3);
  }
  // A push with a gradient of the dense variable on server 0 and of row 1 on server 1.
  static Bytes PushFor(int64_t step, int64_t sequence, float gradient, uint32_t rows = 1,
                       const std::string& position = "") {
    const std::vector<uint32_t> given = {1, 0};
    const std::vector<float> dense = {gradient, gradient};
    Bytes bytes;
    Print(Push{.generation = 1,
               .sequence = sequence,
               .step = step,
               .rows = rows,
               .loss = gradient,
               .position = position,
               .given = given,
               .dense = dense},
          &bytes);
    return bytes;
  }
  static Bytes RowFor(int64_t step, int64_t sequence, float gradient, uint32_t rows = 1) {
    const std::vector<int32_t> row = {0};
    const std::vector<float> values = {gradient};
    Bytes bytes;
    Print(Push{.generation = 1,
               .sequence = sequence,
               .step = step,
               .rows = rows,
               .tables = {{.variable = 1, .rows = row, .values = values}}},
          &bytes);
    return bytes;
  }
};

TEST_F(ServerBackupsTest, AStepIsTheMeanByRowsOfTheFirstPushes) {
  const auto state = NewOfThree();
  ASSERT_TRUE(state->OnPull(1, {.generation = 1, .rows = 3}).ok());
  ASSERT_TRUE(Pulls(*state, 1, {})) << "a pull waits for no other replica";
  ASSERT_TRUE(state->OnPush(1, PushFor(0, 0, 4, /*rows=*/3, "a")).ok());
  EXPECT_FALSE(Pushes(*state, 1));
  ASSERT_TRUE(state->OnPush(3, PushFor(0, 0, 8, /*rows=*/1, "c")).ok());
  ASSERT_TRUE(Pushes(*state, 1));
  EXPECT_EQ(pushed_.step, 1);
  EXPECT_EQ(pushed_.loss, 5);
  EXPECT_EQ(pushed_.stale, 0u);
  EXPECT_THAT(Weights(*state, 0, 2), ElementsAre(-5, -5));
  // The third replica's push is late: the replica continues with its next batch.
  ASSERT_TRUE(state->OnPush(2, PushFor(0, 0, 100, /*rows=*/2, "b")).ok());
  ASSERT_TRUE(Pushes(*state, 2));
  EXPECT_EQ(pushed_.stale, 1u);
  EXPECT_EQ(pushed_.counts, (Counts{.trained = 4, .dropped = 2}));
  EXPECT_THAT(Weights(*state, 0, 2), ElementsAre(-5, -5));
  Held held;
  ASSERT_TRUE(state->OnHold(1, {.generation = 1}).ok());
  ASSERT_TRUE(*state->AnswerHold(1, {.generation = 1}, &held));
  EXPECT_THAT(held.positions, ElementsAre("a", "b", "c"));
  EXPECT_THAT(held.word.counted, ElementsAre(0, -1, 0));
}

TEST_F(ServerBackupsTest, ABatchWithoutAFiniteLossIsDroppedAlone) {
  const auto state = NewOfThree();
  Bytes bytes;
  Print(Push{.generation = 1, .rows = 7, .finite = 0}, &bytes);
  ASSERT_TRUE(state->OnPush(2, bytes).ok());
  ASSERT_TRUE(Pushes(*state, 2));
  EXPECT_EQ(pushed_.finite, 0u);
  EXPECT_EQ(pushed_.counts, (Counts{.dropped = 7}));
  ASSERT_TRUE(state->OnPush(1, PushFor(0, 0, 1)).ok());
  ASSERT_TRUE(state->OnPush(2, PushFor(0, 1, 1)).ok());
  EXPECT_TRUE(Pushes(*state, 1));
}

TEST_F(ServerBackupsTest, FewerPushesMakeAStepWhenTheDataOfOthersHasEnded) {
  const auto state = NewOfThree();
  ASSERT_TRUE(state->OnFinish(1, {.generation = 1}).ok());
  ASSERT_TRUE(state->OnPush(2, PushFor(0, 0, 6)).ok());
  EXPECT_FALSE(Pushes(*state, 2)) << "the step needs replica 2 now";
  ASSERT_TRUE(state->OnFinish(3, {.generation = 1}).ok());
  ASSERT_TRUE(Pushes(*state, 2));
  EXPECT_THAT(Weights(*state, 0, 2), ElementsAre(-6, -6));
}

TEST_F(ServerBackupsTest, ARestartedReplicaPushesItsBatchAgain) {
  const auto state = NewOfThree();
  ASSERT_TRUE(state->OnPush(3, PushFor(0, 0, 1)).ok());
  const auto found = Greet(*state, 9, 2, 2);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->sequence, 0);
  ASSERT_TRUE(state->OnPush(2, PushFor(0, 0, 1)).ok());
  EXPECT_FALSE(Pushes(*state, 2)) << "a push from before its Hello does not count";
  ASSERT_TRUE(state->OnPush(9, PushFor(0, 0, 3)).ok());
  ASSERT_TRUE(Pushes(*state, 2));
  EXPECT_THAT(Weights(*state, 0, 2), ElementsAre(-2, -2));
}

TEST_F(ServerBackupsTest, AStopRequestEndsAllReplicasWithoutAnotherStep) {
  const auto state = NewOfThree();
  ASSERT_TRUE(state->OnPush(1, PushFor(0, 0, 1, 1, "a")).ok());
  ASSERT_TRUE(state->OnPull(2, {.generation = 1, .stop = 2}).ok());
  ASSERT_TRUE(Pulls(*state, 2, {}));
  EXPECT_EQ(pulled_.stop, 2u);
  ASSERT_TRUE(Pushes(*state, 1));
  EXPECT_EQ(pushed_.stop, 2u);
  ASSERT_TRUE(state->OnPush(3, PushFor(0, 0, 1)).ok());
  EXPECT_THAT(Weights(*state, 0, 2), ElementsAre(0, 0));
  State found;
  EXPECT_TRUE(*state->AnswerWait(1, {.generation = 1, .for_all = 1}, &found));
  EXPECT_EQ(found.position, "") << "its batch is not in the weights";
}

TEST_F(ServerBackupsTest, NoStepEndsDuringASave) {
  const auto state = NewOfThree();
  ASSERT_TRUE(state->OnHold(1, {.generation = 1}).ok());
  ASSERT_TRUE(state->OnPush(2, PushFor(0, 0, 1)).ok());
  ASSERT_TRUE(state->OnPush(3, PushFor(0, 0, 1)).ok());
  EXPECT_FALSE(Pushes(*state, 2));
  EXPECT_THAT(Weights(*state, 0, 2), ElementsAre(0, 0));
  ASSERT_TRUE(state->OnRelease(1, {.generation = 1}).ok());
  EXPECT_TRUE(Pushes(*state, 2));
}

TEST_F(ServerBackupsTest, OtherServersApplyTheBatchesThatTheLeadNames) {
  const auto state = NewOfThree(/*server=*/1, /*servers=*/2);
  for (const Connection from : {1, 2, 3}) {
    ASSERT_TRUE(state->OnPush(from, RowFor(0, 0, static_cast<float>(from), 2)).ok());
    ASSERT_TRUE(Pushes(*state, from));
  }
  Pull pull = {.generation = 1, .step = 0};
  ASSERT_TRUE(state->OnPull(1, pull).ok());
  EXPECT_THAT(Weights(*state, 1, 2), ElementsAre(0, 0));
  pull.step = 1;
  pull.word.counted = {0, -1, 0};
  ASSERT_TRUE(state->OnPull(1, pull).ok());
  EXPECT_THAT(Weights(*state, 1, 2), ElementsAre(-2, 0));
  // Another replica brings the same word, or an older one.
  ASSERT_TRUE(state->OnPull(2, pull).ok());
  ASSERT_TRUE(state->OnPull(2, {.generation = 1, .step = 0}).ok());
  EXPECT_THAT(Weights(*state, 1, 2), ElementsAre(-2, 0));
  // Invalid words: with batches that the server does not have, or of the wrong size.
  for (const auto& counted : std::vector<std::vector<int64_t>>{{1, -1, -1}, {-1, 0, -1}, {0}}) {
    pull.step = 2;
    pull.word.counted = counted;
    EXPECT_EQ(state->OnPull(1, pull).code(), StatusCode::kAborted);
  }
  pull.step = 3;
  EXPECT_EQ(state->OnPull(1, pull).code(), StatusCode::kAborted);
  EXPECT_THAT(Weights(*state, 1, 2), ElementsAre(-2, 0));
}

}  // namespace
}  // namespace muster::ps
