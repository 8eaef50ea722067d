// Which replicas the others on a parameter server wait for, and for how long.
#include "muster/ps/server/server_state_test_support.h"

namespace muster::ps {
namespace {

using testing::HasSubstr;

class ServerWaitsTest : public ServerStateTest {
 protected:
  // Calls OnTick every second from now on; returns the last status.
  absl::Status Ticks(ServerState& state, int seconds) {
    absl::Status status;
    for (int i = 0; i < seconds && status.ok(); ++i) {
      state.SetTime(now_ += 1);
      status = state.OnTick();
    }
    return status;
  }
  static void ExpectNames(const absl::Status& status, const std::string& names) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(ToStd(status.message()), HasSubstr(StrCat("waited 300 s for ", names, ":")));
  }

  double now_ = 1000;
};

TEST_F(ServerWaitsTest, ASynchronousStepNeedsAllReplicas) {
  const auto state = New(/*synchronous=*/true);
  EXPECT_TRUE(Ticks(*state, 1000).ok()) << "a replica that computes for long is not away";
  EXPECT_EQ(state->Awaited(), "");
  state->OnClosed(2);
  EXPECT_TRUE(Ticks(*state, 300).ok());
  EXPECT_EQ(state->Awaited(), "worker-0");
  ExpectNames(Ticks(*state, 1), "worker-0");
  // The error goes to a replica that waits, and to one that connects too late.
  ExpectNames(state->AnswerPull(1, {.generation = 1}, &dense_, &rows_, &pulled_).status(),
              "worker-0");
  ExpectNames(Greet(*state, 9, 1, 2).status(), "worker-0");
}

TEST_F(ServerWaitsTest, WaitingReplicasAreToldThatTheOtherWasRefused) {
  const auto state = New(/*synchronous=*/true);
  state->OnClosed(2);
  Hello other = {.replica = 1, .replicas = 2, .synchronous = 1, .agreement = "epochs=5"};
  ASSERT_FALSE(state->OnHello(9, /*incarnation=*/7, other).ok());
  EXPECT_TRUE(Ticks(*state, 300).ok());
  EXPECT_THAT(state->Awaited(),
              HasSubstr("worker-0 (it tried to connect and was refused: worker-0 has ["));
  EXPECT_THAT(ToStd(Ticks(*state, 1).message()),
              HasSubstr("worker-0 (it tried to connect and was refused: "));
  const auto patient = New(true);
  patient->OnClosed(2);
  ASSERT_FALSE(patient->OnHello(9, 7, other).ok());
  ASSERT_TRUE(Greet(*patient, 10, 1, 7).ok());
  patient->OnClosed(10);
  EXPECT_TRUE(Ticks(*patient, 1).ok());
  EXPECT_EQ(patient->Awaited(), "worker-0") << "its next attempt was accepted";
}

TEST_F(ServerWaitsTest, AReplicaThatReturnsInTimeIsNotOverdue) {
  const auto state = New(true);
  state->OnClosed(2);
  EXPECT_TRUE(Ticks(*state, 200).ok());
  ASSERT_TRUE(Greet(*state, 9, 1, 2).ok());
  EXPECT_TRUE(Ticks(*state, 1).ok());
  EXPECT_EQ(state->Awaited(), "");
  state->OnClosed(9);
  EXPECT_TRUE(Ticks(*state, 200).ok());
}

TEST_F(ServerWaitsTest, EveryServerNeedsTheChiefWithEveryStrategy) {
  for (const bool synchronous : {true, false}) {
    for (const int server : {0, 1}) {
      const auto state = New(synchronous, server, /*servers=*/2);
      state->OnClosed(1);
      EXPECT_TRUE(Ticks(*state, 300).ok());
      EXPECT_EQ(state->Awaited(), "chief-0");
      ExpectNames(Ticks(*state, 1), "chief-0");
    }
  }
}

TEST_F(ServerWaitsTest, AnAsynchronousWorkerIsNeededWhenTheChiefWaitsForAll) {
  const auto state = New(/*synchronous=*/false);
  state->OnClosed(2);
  EXPECT_TRUE(Ticks(*state, 5000).ok());
  EXPECT_EQ(state->Awaited(), "");
  ASSERT_TRUE(state->OnFinish(1, {.generation = 1}).ok());
  State answer;
  const auto all = state->AnswerWait(1, {.generation = 1, .for_all = 1}, &answer);
  ASSERT_TRUE(all.ok());
  EXPECT_FALSE(*all);
  EXPECT_EQ(state->Awaited(), "worker-0");
  EXPECT_TRUE(Ticks(*state, 299).ok());
  ExpectNames(Ticks(*state, 2), "worker-0");
}

TEST_F(ServerWaitsTest, BackupReplicasAreNeededWhenAStepLacksReplicas) {
  aggregate_ = 2;
  const auto state = New(/*synchronous=*/true, 0, 1, /*replicas=*/3);
  state->OnClosed(3);
  EXPECT_TRUE(Ticks(*state, 5000).ok());
  EXPECT_EQ(state->Awaited(), "");
  state->OnClosed(2);
  EXPECT_TRUE(Ticks(*state, 300).ok());
  EXPECT_EQ(state->Awaited(), "worker-0, worker-1");
  ExpectNames(Ticks(*state, 1), "worker-0, worker-1");
}

TEST_F(ServerWaitsTest, AStopIsNoEndOfTheTraining) {
  const auto state = New(true);
  EXPECT_FALSE(state->OnStopAll(2).ok()) << "not the chief";
  EXPECT_TRUE(state->stopped().ok());
  ASSERT_TRUE(state->OnStopAll(1).ok());
  EXPECT_EQ(state->stopped().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(state->over());
}

TEST_F(ServerWaitsTest, NoReplicaIsNeededWhenTrainingIsOver) {
  const auto state = New(true);
  ASSERT_TRUE(state->OnEnd(1).ok());
  state->OnClosed(1);
  state->OnClosed(2);
  EXPECT_TRUE(Ticks(*state, 1000).ok());
}

}  // namespace
}  // namespace muster::ps
