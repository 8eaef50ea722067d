// ServerState's record counts.
#include "muster/ps/server/server_state_test_support.h"

namespace muster::ps {
namespace {

class ServerCountsTest : public ServerStateTest {
 protected:
  static Bytes MakePush(int64_t generation, int64_t sequence, uint32_t rows, int64_t dropped = 0,
                        bool finite = true) {
    Bytes bytes;
    Print(Push{.generation = generation,
               .sequence = sequence,
               .rows = rows,
               .finite = static_cast<uint32_t>(finite),
               .dropped = dropped},
          &bytes);
    return bytes;
  }
  static Counts ParseCounts(ServerState& state, Connection from) {
    State found;
    EXPECT_TRUE(state.AnswerWait(from, {.generation = 0}, &found).ok());
    return found.counts;
  }
};

TEST_F(ServerCountsTest, AsynchronousBatchesWithoutAFiniteLossAreDropped) {
  const auto state = New(/*synchronous=*/false);
  ASSERT_TRUE(state->OnPush(1, MakePush(1, 0, 16)).ok());
  ASSERT_TRUE(state->OnPush(1, MakePush(1, 0, 16)).ok()) << "sent again it counts once";
  ASSERT_TRUE(state->OnPush(2, MakePush(1, 0, 10, 0, /*finite=*/false)).ok());
  ASSERT_TRUE(state->OnPush(2, MakePush(1, 1, 7, /*dropped=*/3)).ok());
  EXPECT_EQ(ParseCounts(*state, 1), (Counts{.trained = 23, .dropped = 13}));
  ASSERT_TRUE(state->OnFinish(2, {.generation = 1, .left_at_end = 5}).ok());
  ASSERT_TRUE(state->OnFinish(1, {.generation = 1, .left_at_end = 1}).ok());
  EXPECT_EQ(ParseCounts(*state, 1).left_at_end, 6);
}

// Each replica reports how many records its process has left out so far; its last report counts.
TEST_F(ServerCountsTest, BadRecordsAreSummedOverReplicas) {
  const auto state = New(/*synchronous=*/false);
  ASSERT_TRUE(state->OnPull(1, {.generation = 1, .bad_records = 2}).ok());
  ASSERT_TRUE(state->OnPull(2, {.generation = 1, .bad_records = 3}).ok());
  EXPECT_EQ(ParseCounts(*state, 1).bad_records, 5);
  ASSERT_TRUE(state->OnFinish(2, {.generation = 1, .bad_records = 7}).ok());
  EXPECT_EQ(ParseCounts(*state, 1).bad_records, 9);
}

TEST_F(ServerCountsTest, ARoundIsTrainedOrDroppedAsAWhole) {
  const auto state = New(/*synchronous=*/true);
  ASSERT_TRUE(state->OnPush(1, MakePush(1, 0, 16)).ok());
  EXPECT_EQ(ParseCounts(*state, 1), Counts()) << "the round has not ended";
  ASSERT_TRUE(state->OnPush(2, MakePush(1, 0, 10, 2)).ok());
  EXPECT_EQ(ParseCounts(*state, 1), (Counts{.trained = 26, .dropped = 2}));
  ASSERT_TRUE(state->OnPush(1, MakePush(1, 1, 16)).ok());
  ASSERT_TRUE(state->OnPush(2, MakePush(1, 1, 10, 0, /*finite=*/false)).ok());
  EXPECT_EQ(ParseCounts(*state, 1), (Counts{.trained = 26, .dropped = 28}));
  // A replica whose data has ended reports the records that are left.
  ASSERT_TRUE(state->OnPull(1, {.generation = 1, .sequence = 2, .step = 1, .left_at_end = 4}).ok());
  ASSERT_TRUE(state->OnPull(2, {.generation = 1, .sequence = 2, .step = 1}).ok());
  ASSERT_TRUE(Pulls(*state, 1, {}));
  EXPECT_EQ(pulled_.counts.left_at_end, 4);
}

TEST_F(ServerCountsTest, RecordsTrainedAgainAfterACheckpointAreRepeated) {
  const auto state = New(/*synchronous=*/false);
  for (int64_t batch = 0; batch < 3; ++batch) {
    ASSERT_TRUE(state->OnPush(1, MakePush(1, batch, 10)).ok());
  }
  ASSERT_TRUE(state->OnBreak(1, {.generation = 1, .why = "ps-1 was lost"}).ok());
  ASSERT_TRUE(state->OnBegin(1, {.generation = 2}).ok());
  ASSERT_TRUE(state->OnReady(1, {.generation = 2, .counts = {.trained = 10, .dropped = 1}}).ok());
  EXPECT_EQ(ParseCounts(*state, 1), (Counts{.trained = 10, .dropped = 1, .repeated = 20}));
  ASSERT_TRUE(state->OnPush(1, MakePush(2, 0, 10)).ok());
  // Training is repeated: of 40 records that were trained, 30 are not in the weights.
  ASSERT_TRUE(state->OnBegin(1, {.generation = 3}).ok());
  ASSERT_TRUE(state->OnReady(1, {.generation = 3, .counts = {.trained = 10, .dropped = 1}}).ok());
  EXPECT_EQ(ParseCounts(*state, 1).repeated, 30);
}

TEST_F(ServerCountsTest, ARestartedServerLearnsOfLostWorkFromReplicas) {
  const auto state = New(/*synchronous=*/false);
  Hello hello = {
      .replica = 1, .replicas = 2, .servers = 1, .agreement = "model 1", .generation = 7};
  hello.work = 25;
  ASSERT_TRUE(state->OnHello(9, 1, hello).ok());
  ASSERT_TRUE(state->OnBegin(1, {.generation = 8}).ok());
  ASSERT_TRUE(state->OnReady(1, {.generation = 8, .counts = {.trained = 10}}).ok());
  EXPECT_EQ(ParseCounts(*state, 1).repeated, 15);
  // Another replica knows of more work, and connects when training has already continued.
  ASSERT_TRUE(state->OnPush(1, MakePush(8, 0, 10)).ok());
  hello.work = 40;
  for (const Connection from : {10u, 11u}) {
    ASSERT_TRUE(state->OnHello(from, 1, hello).ok());
    EXPECT_EQ(ParseCounts(*state, from), (Counts{.trained = 20, .repeated = 30}));
  }
  // A replica's work in the present state does not count again.
  hello.generation = 8;
  hello.work = 50;
  ASSERT_TRUE(state->OnHello(12, 1, hello).ok());
  EXPECT_EQ(ParseCounts(*state, 12).repeated, 30);
}

}  // namespace
}  // namespace muster::ps
