#include "muster/ps/server/server_state.h"

#include "muster/ps/server/server_state_test_support.h"

namespace muster::ps {
namespace {

using absl::StatusCode;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(ServerStateTest, AnAsynchronousPushIsAppliedOnceHoweverOftenItIsSent) {
  const auto state = New(/*synchronous=*/false);
  ASSERT_TRUE(state->OnPush(1, DensePush(0, {1, 2})).ok());
  ASSERT_TRUE(Pushes(*state, 1));
  EXPECT_EQ(pushed_.step, 1);
  ASSERT_TRUE(state->OnPush(1, DensePush(0, {1, 2})).ok());
  EXPECT_THAT(Weights(*state, 0, 2), ElementsAre(-1, -2));
  // The replica's replacement does not know whether the push arrived, and asks with its Hello.
  auto found = Greet(*state, 9, 0, /*incarnation=*/2);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->sequence, 1);
  ASSERT_TRUE(state->OnPush(9, DensePush(0, {1, 2})).ok());
  ASSERT_TRUE(state->OnPush(9, DensePush(1, {1, 0}, "there")).ok());
  // Each replica's batches are counted separately.
  ASSERT_TRUE(state->OnPush(2, DensePush(0, {0, 1})).ok());
  found = Greet(*state, 10, 0, 3);
  EXPECT_EQ(found->position, "there");
  EXPECT_EQ(found->step, 3);
}

TEST_F(ServerStateTest, ABatchOutOfTurnIsRefused) {
  const auto state = New(false);
  EXPECT_EQ(state->OnPush(1, DensePush(1, {1, 2})).code(), StatusCode::kAborted);
}

TEST_F(ServerStateTest, AReplacedReplicaIsFenced) {
  const auto state = New(false);
  ASSERT_TRUE(Greet(*state, 9, 1, /*incarnation=*/2).ok());
  EXPECT_EQ(state->OnPush(2, DensePush(0, {1, 2})).code(), StatusCode::kAborted);
  const absl::Status again = Greet(*state, 10, 1, 1).status();
  EXPECT_EQ(again.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(ToStd(again.message()), HasSubstr("fenced"));
  EXPECT_TRUE(state->OnPush(9, DensePush(0, {1, 2})).ok());
}

TEST_F(ServerStateTest, OtherFlagsAreRefusedAndBothTasksAreNamed) {
  const auto state = New(false);
  const absl::Status refused =
      state->OnHello(9, 1, {.replica = 1, .replicas = 2, .servers = 1, .agreement = "model 2"})
          .status();
  EXPECT_THAT(ToStd(refused.message()), AllOf(HasSubstr("model 1"), HasSubstr("model 2")));
  EXPECT_FALSE(state->OnHello(9, 1, {.version = 99, .replica = 1, .agreement = "model 1"}).ok());
}

TEST_F(ServerStateTest, UnknownSettingsComeFromTheFirstReplica) {
  placements_.push_back(std::make_unique<Placement>(variables_, 1));
  ServerState state({.training = {.replicas = 2}, .agreement = "epochs=5; data=?"}, variables_,
                    *placements_.back());
  const auto greet = [&](uint32_t replica, const std::string& agreement) {
    return state
        .OnHello(replica + 1, 1,
                 {.replica = replica, .replicas = 2, .servers = 1, .agreement = agreement})
        .status();
  };
  EXPECT_TRUE(greet(1, "epochs=5; data=2 files").ok());
  EXPECT_THAT(ToStd(greet(0, "epochs=5; data=4 files").message()),
              HasSubstr("chief-0 has [data 4 files], worker-0 has [data 2 files]:"));
  EXPECT_THAT(ToStd(greet(0, "epochs=1; data=2 files").message()),
              HasSubstr("chief-0 has [epochs 1], worker-0 has [epochs 5]:"));
  EXPECT_TRUE(greet(0, "epochs=5; data=2 files").ok());
}

TEST_F(ServerStateTest, ASynchronousRoundWaitsForAllAndIsAppliedOnce) {
  const auto state = New(/*synchronous=*/true);
  ASSERT_TRUE(state->OnPull(1, {.generation = 1, .rows = 3}).ok());
  EXPECT_FALSE(Pulls(*state, 1, {}));
  ASSERT_TRUE(state->OnPull(2, {.generation = 1, .rows = 4, .stop = 1}).ok());
  ASSERT_TRUE(Pulls(*state, 1, {}));
  EXPECT_EQ(pulled_.rows, 7u);
  EXPECT_EQ(pulled_.stop, 1u);
  // A decision is final, whatever a replacement requests.
  ASSERT_TRUE(Greet(*state, 9, 1, 2).ok());
  ASSERT_TRUE(state->OnPull(9, {.generation = 1, .rows = 5}).ok());
  ASSERT_TRUE(Pulls(*state, 9, {}));
  EXPECT_EQ(pulled_.rows, 7u);

  ASSERT_TRUE(state->OnPush(1, DensePush(0, {1, 2}, "a")).ok());
  EXPECT_FALSE(Pushes(*state, 1));
  ASSERT_TRUE(state->OnPush(9, DensePush(0, {10, 20}, "b")).ok());
  ASSERT_TRUE(Pushes(*state, 1));
  ASSERT_TRUE(Pushes(*state, 9));
  EXPECT_EQ(pushed_.step, 1);
  EXPECT_THAT(Weights(*state, 0, 2), ElementsAre(-11, -22));
  // When it is sent again, the push belongs to a round that is over.
  EXPECT_EQ(state->OnPush(9, DensePush(0, {10, 20}, "b")).code(), StatusCode::kAborted);
  EXPECT_EQ(Greet(*state, 10, 1, 3)->position, "b");
}

TEST_F(ServerStateTest, ARoundWithoutAFiniteLossIsNotApplied) {
  const auto state = New(true);
  ASSERT_TRUE(state->OnPush(1, DensePush(0, {1, 2})).ok());
  Bytes bytes;
  Print(Push{.generation = 1, .finite = 0}, &bytes);
  ASSERT_TRUE(state->OnPush(2, bytes).ok());
  ASSERT_TRUE(Pushes(*state, 1));
  EXPECT_EQ(pushed_.finite, 0u);
  EXPECT_EQ(pushed_.step, 0);
  EXPECT_THAT(Weights(*state, 0, 2), ElementsAre(0, 0));
  EXPECT_EQ(Greet(*state, 10, 1, 3)->sequence, 1);
}

// Rows 1 and 3 of the table are on server 1.
TEST_F(ServerStateTest, OtherServersKeepARoundUntilTheNextBegins) {
  const auto state = New(true, /*server=*/1, /*servers=*/2);
  ASSERT_TRUE(state->OnPush(1, TablePush(0, {0, 1}, {1, 1})).ok());
  ASSERT_TRUE(Pushes(*state, 1)) << "a push is answered as soon as it is staged";
  ASSERT_TRUE(state->OnPush(2, TablePush(0, {1}, {5})).ok());
  // The replacement of a replica that died now finds the weights of its round, and gives the same
  // gradient again.
  ASSERT_TRUE(Greet(*state, 9, 1, 2, /*server=*/1).ok());
  ASSERT_TRUE(state->OnPull(9, {.generation = 1, .sequence = 0, .step = 0}).ok());
  EXPECT_THAT(Weights(*state, 1, 2), ElementsAre(0, 0));
  ASSERT_TRUE(state->OnPush(9, TablePush(0, {1}, {5})).ok());
  ASSERT_TRUE(state->OnPull(9, {.generation = 1, .sequence = 1, .step = 1}).ok());
  EXPECT_THAT(Weights(*state, 1, 2), ElementsAre(-1, -6));
  // The chief then pulls for the same round.
  ASSERT_TRUE(state->OnPull(1, {.generation = 1, .sequence = 1, .step = 1}).ok());
  EXPECT_THAT(Weights(*state, 1, 2), ElementsAre(-1, -6));
  // A round that the lead did not apply changes nothing.
  ASSERT_TRUE(state->OnPush(1, TablePush(1, {0}, {1})).ok());
  ASSERT_TRUE(state->OnPush(9, TablePush(1, {0}, {1})).ok());
  ASSERT_TRUE(state->OnPull(9, {.generation = 1, .sequence = 2, .step = 1}).ok());
  EXPECT_THAT(Weights(*state, 1, 2), ElementsAre(-1, -6));
}

TEST_F(ServerStateTest, ASaveWaitsForBatchesInFlightAndBlocksNewOnes) {
  const auto state = New(false);
  ASSERT_TRUE(Pulls(*state, 2, {}));
  const Hold hold = {.generation = 1};
  Held held;
  ASSERT_TRUE(state->OnHold(1, hold).ok());
  EXPECT_FALSE(*state->AnswerHold(1, hold, &held)) << "a batch of replica 1 is in flight";
  ASSERT_TRUE(state->OnPush(2, DensePush(0, {1, 1}, "after it")).ok());
  ASSERT_TRUE(*state->AnswerHold(1, hold, &held));
  EXPECT_EQ(held.step, 1);
  EXPECT_THAT(held.positions, ElementsAre("", "after it"));
  EXPECT_FALSE(Pulls(*state, 2, {}));
  ASSERT_TRUE(state->OnRelease(1, {.generation = 1}).ok());
  EXPECT_TRUE(Pulls(*state, 2, {}));
}

// A chief that was started again saves while its push is already in the round.
TEST_F(ServerStateTest, ARoundDoesNotEndDuringASave) {
  const auto state = New(/*synchronous=*/true);
  ASSERT_TRUE(state->OnPush(1, DensePush(0, {1, 2}, "a")).ok());
  ASSERT_TRUE(Greet(*state, 9, 0, 2).ok());
  const Hold hold = {.generation = 1, .step = 0};
  Held held;
  ASSERT_TRUE(state->OnHold(9, hold).ok());
  ASSERT_TRUE(*state->AnswerHold(9, hold, &held));
  ASSERT_TRUE(state->OnPush(2, DensePush(0, {10, 20}, "b")).ok());
  EXPECT_FALSE(Pushes(*state, 2));
  const auto weights = state->OnFetch(9, {.generation = 1, .variable = 0, .count = 2});
  EXPECT_THAT(*weights, ElementsAre(0, 0));
  ASSERT_TRUE(state->OnRelease(9, {.generation = 1}).ok());
  EXPECT_TRUE(Pushes(*state, 2));
  EXPECT_EQ(pushed_.step, 1);
}

TEST_F(ServerStateTest, NoReplicaExceedsTheBoundOnStaleness) {
  for (const int64_t bound : {0, 2}) {
    staleness_ = bound;
    const auto state = New(/*synchronous=*/false);
    state->SetTime(1);
    for (int64_t batch = 0; batch <= bound; ++batch) {
      ASSERT_TRUE(Pulls(*state, 1, {.sequence = batch})) << bound;
      ASSERT_TRUE(state->OnPush(1, DensePush(batch, {1, 1})).ok());
    }
    const Pull next = {.sequence = bound + 1};
    EXPECT_FALSE(Pulls(*state, 1, next));
    ASSERT_TRUE(Pulls(*state, 2, {}));
    EXPECT_FALSE(Pulls(*state, 1, next)) << "the batch of the other replica does not count yet";
    ASSERT_TRUE(state->OnPush(2, DensePush(0, {1, 1})).ok());
    EXPECT_TRUE(Pulls(*state, 1, next));
    EXPECT_THAT(pulled_.sequences, ElementsAre(bound + 1, 1));
  }
}

TEST_F(ServerStateTest, ADeadReplicaHoldsUpTheOthersForItsLease) {
  staleness_ = 0;
  const auto state = New(/*synchronous=*/false);
  state->SetTime(1);
  ASSERT_TRUE(state->OnPush(1, DensePush(0, {1, 1})).ok());
  state->OnClosed(2);
  const Pull next = {.sequence = 1};
  state->SetTime(9.9);
  EXPECT_FALSE(Pulls(*state, 1, next)) << "its replacement may connect";
  // The replica is alive, and says so on another connection.
  ASSERT_TRUE(state->OnBeat(1, {.replica = 1}).ok());
  state->SetTime(19);
  EXPECT_FALSE(Pulls(*state, 1, next));
  state->SetTime(20);
  EXPECT_TRUE(Pulls(*state, 1, next));
  ASSERT_TRUE(state->OnPush(1, DensePush(1, {1, 1})).ok());
  // The others wait for its replacement again; heartbeats of the earlier incarnation do not count.
  ASSERT_TRUE(Greet(*state, 9, 1, 2).ok());
  EXPECT_FALSE(Pulls(*state, 1, {.sequence = 2}));
  state->SetTime(29);
  ASSERT_TRUE(state->OnBeat(1, {.replica = 1}).ok());
  state->SetTime(31);
  EXPECT_TRUE(Pulls(*state, 1, {.sequence = 2}));
  EXPECT_FALSE(state->OnBeat(1, {.replica = 2}).ok());
}

TEST_F(ServerStateTest, AReplicaWhoseDataHasEndedHoldsUpNoOther) {
  staleness_ = 0;
  const auto state = New(/*synchronous=*/false);
  ASSERT_TRUE(state->OnPush(1, DensePush(0, {1, 1})).ok());
  EXPECT_FALSE(Pulls(*state, 1, {.sequence = 1}));
  ASSERT_TRUE(state->OnFinish(2, {.generation = 1}).ok());
  EXPECT_TRUE(Pulls(*state, 1, {.sequence = 1}));
}

// After the lead has reported that other replicas' batches count, a pull sees them on every server.
TEST_F(ServerStateTest, OtherServersApplyCountedBatchesBeforeABoundedPull) {
  const auto state = New(/*synchronous=*/false, /*server=*/1, /*servers=*/2);
  ASSERT_TRUE(state->OnPush(2, TablePush(0, {1}, {5})).ok());
  ASSERT_TRUE(state->OnPull(1, {.generation = 1, .sequences = {0, 1}}).ok());
  EXPECT_THAT(Weights(*state, 1, 2), ElementsAre(0, -5));
}

// If a replica is lost before the lead has its push, the push is in the weights of neither server.
TEST_F(ServerStateTest, OtherServersKeepAnAsynchronousPushUntilItCounts) {
  const auto state = New(/*synchronous=*/false, /*server=*/1, /*servers=*/2);
  ASSERT_TRUE(state->OnPush(1, TablePush(0, {0}, {1})).ok());
  ASSERT_TRUE(Pushes(*state, 1));
  ASSERT_TRUE(state->OnPush(2, TablePush(0, {1}, {5})).ok());
  // The lead says that the first push counts.
  Held held;
  const Hold hold = {.generation = 1, .sequences = {1, 0}};
  ASSERT_TRUE(state->OnHold(1, hold).ok());
  ASSERT_TRUE(*state->AnswerHold(1, hold, &held));
  EXPECT_THAT(Weights(*state, 1, 2), ElementsAre(-1, 0));
  // The replacement sends the other push again, with new values.
  ASSERT_TRUE(Greet(*state, 9, 1, 2, /*server=*/1).ok());
  ASSERT_TRUE(state->OnPull(9, {.generation = 1, .sequence = 0}).ok());
  ASSERT_TRUE(state->OnPush(9, TablePush(0, {1}, {7})).ok());
  ASSERT_TRUE(state->OnPull(9, {.generation = 1, .sequence = 1}).ok());
  EXPECT_THAT(Weights(*state, 1, 2), ElementsAre(-1, -7));
  EXPECT_FALSE(state->OnHold(1, {.generation = 1, .sequences = {1}}).ok());
}

TEST_F(ServerStateTest, ALostReplicaHoldsUpNoSave) {
  const auto state = New(false);
  ASSERT_TRUE(Pulls(*state, 2, {}));
  state->OnClosed(2);  // in the middle of a batch
  Held held;
  ASSERT_TRUE(state->OnHold(1, {.generation = 1}).ok());
  EXPECT_TRUE(*state->AnswerHold(1, {.generation = 1}, &held));
  state->OnClosed(1);  // in the middle of a save
  ASSERT_TRUE(Greet(*state, 9, 1, 2).ok());
  EXPECT_TRUE(Pulls(*state, 9, {}));
}

TEST_F(ServerStateTest, ARequestForAnOlderStateIsRefused) {
  const auto state = New(false);
  ASSERT_TRUE(state->OnBreak(2, {.generation = 1, .why = "ps-1 has no state"}).ok());
  const absl::Status broken = state->OnPush(1, DensePush(0, {1, 1}));
  EXPECT_EQ(broken.code(), StatusCode::kAborted);
  EXPECT_THAT(ToStd(broken.message()), HasSubstr("ps-1 has no state"));
  EXPECT_EQ(state->OnBegin(1, {.generation = 1}).code(), StatusCode::kAborted);
  EXPECT_EQ(state->OnBegin(2, {.generation = 2}).code(), StatusCode::kInvalidArgument)
      << "not the chief";
  ASSERT_TRUE(state->OnBegin(1, {.generation = 2}).ok());
  State found;
  EXPECT_FALSE(*state->AnswerWait(2, {.generation = 1}, &found)) << "the state is not loaded yet";
  ASSERT_TRUE(state->OnReady(1, {.generation = 2, .step = 40, .positions = {"a", "b"}}).ok());
  ASSERT_TRUE(*state->AnswerWait(2, {.generation = 1}, &found));
  EXPECT_EQ(found.step, 40);
  EXPECT_EQ(found.position, "b");
  EXPECT_EQ(state->OnPush(2, DensePush(0, {1, 1})).code(), StatusCode::kAborted);
}

TEST_F(ServerStateTest, TheChiefWaitsForAllAndEnds) {
  const auto state = New(false);
  State found;
  const Wait wait = {.generation = 1, .for_all = 1};
  ASSERT_TRUE(state->OnFinish(1, {.generation = 1}).ok());
  EXPECT_FALSE(*state->AnswerWait(1, wait, &found));
  ASSERT_TRUE(state->OnFinish(2, {.generation = 1}).ok());
  EXPECT_TRUE(*state->AnswerWait(1, wait, &found));
  EXPECT_FALSE(state->OnEnd(2).ok());
  ASSERT_TRUE(state->OnEnd(1).ok());
  EXPECT_EQ(state->OnPush(2, DensePush(0, {1, 1})).code(), StatusCode::kCancelled);
}

TEST_F(ServerStateTest, RowsOfOtherServersAreRefused) {
  const auto state = New(false);
  EXPECT_EQ(state->OnPush(77, DensePush(0, {1, 1})).code(), StatusCode::kInvalidArgument);
  for (Bytes& bytes : std::vector<Bytes>{DensePush(0, {1, 1, 1}), TablePush(0, {4}, {1}),
                                         TablePush(0, {-1}, {1}), TablePush(0, {1}, {1, 2})}) {
    EXPECT_EQ(state->OnPush(1, bytes).code(), StatusCode::kInvalidArgument);
  }
  const std::vector<int32_t> rows = {4};
  EXPECT_FALSE(state->OnPull(1, {.generation = 1, .tables = {{.variable = 1, .rows = rows}}}).ok());
  EXPECT_FALSE(state->OnPull(1, {.generation = 1, .tables = {{.variable = 0}}}).ok());
  for (const Slice& slice : {Slice{.generation = 1, .variable = 2, .count = 1},
                             Slice{.generation = 1, .variable = 0, .slot = 1, .count = 1},
                             Slice{.generation = 1, .variable = 0, .first = 1, .count = 2},
                             Slice{.generation = 1, .variable = 0, .first = -1, .count = 1}}) {
    EXPECT_FALSE(state->OnFetch(1, slice).ok());
  }
  EXPECT_THAT(Weights(*state, 0, 2), ElementsAre(0, 0));
}

}  // namespace
}  // namespace muster::ps
