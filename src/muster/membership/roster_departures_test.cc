// Roster: members that cannot reach each other, that are told to end, or that leave when training
// is complete.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/membership/roster.h"
#include "muster/membership/roster_test_support.h"

namespace muster::membership {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The network between two workers is cut, but the chief reaches both.
class CutLinkTest : public RosterTest {
 protected:
  // Forms a view, then worker-1's report that it cannot reach worker-0 arrives.
  void MissEachOther(int64_t incarnation = 1) {
    SendJoin(3, kWorker1, 5, incarnation);
    SendJoin(1, kChief, 5);
    SendJoin(2, kWorker0, 5);
    if (!roster_->view()) Wait(8);
    ASSERT_TRUE(roster_->view());
    last_generation_ = roster_->view()->generation;
    // The chief reports it for worker-1.
    Send(1, {.failure = Broken{.generation = last_generation_,
                               .culprit = {kWorker0, 1},
                               .cause = "neither data nor keep-alives came",
                               .seen_by = MemberId{kWorker1, incarnation}}});
    EXPECT_FALSE(roster_->view());
  }
};

TEST_F(CutLinkTest, OneOfTheTwoIsGivenUpIfTheOthersAreEnough) {
  Open({.tasks = {kChief, kWorker0, kWorker1}, .min_replicas = 2});
  MissEachOther();
  EXPECT_EQ(Last(3).refused, "") << "the failure may be temporary";
  MissEachOther();
  EXPECT_THAT(Last(3).refused, AllOf(HasSubstr("worker-1"), HasSubstr("cannot reach worker-0"),
                                     HasSubstr("given up")));
  EXPECT_TRUE(closed_.contains(3));
  ASSERT_TRUE(Last(1).broken);
  EXPECT_EQ(Last(1).broken->culprit.task, kWorker1);
  SendJoin(1, kChief, 5);
  SendJoin(2, kWorker0, 5);
  ASSERT_TRUE(roster_->view()) << "a view does not wait for a task that was given up";
  EXPECT_EQ(roster_->view()->replicas, 2);
  // The replacement of worker-1 has only one attempt.
  MissEachOther(/*incarnation=*/2);
  EXPECT_THAT(Last(3).refused, HasSubstr("given up"));
}

TEST_F(CutLinkTest, TheFailureNamesBothIfAllAreNeeded) {
  OpenAll();
  for (int i = 0; i < 10 && roster_->status().ok(); ++i) {
    SendJoin(1, kChief, 5);
    SendJoin(2, kWorker0, 5);
    SendJoin(3, kWorker1, 5);
    if (!roster_->view() && roster_->status().ok()) Wait(8);
    if (!roster_->view()) break;
    last_generation_ = roster_->view()->generation;
    Broken failure = {.generation = last_generation_, .culprit = {kWorker0, 1}, .cause = "gone"};
    // The report may come from worker-1 itself, or from another member that was told of it.
    const bool by_chief = i % 2 == 0;
    if (by_chief) failure.seen_by = MemberId{kWorker1, 1};
    Send(by_chief ? 1 : 3, {.failure = failure});
  }
  EXPECT_THAT(ToStd(roster_->status().message()),
              AllOf(HasSubstr("worker-0"), HasSubstr("seen by worker-1")));
}

TEST_F(RosterTest, ATerminatedTaskIsWaitedForIfAllAreNeeded) {
  Begin();
  Send(3, {.away = true});
  EXPECT_TRUE(closed_.contains(3));
  ASSERT_TRUE(Last(1).broken);
  EXPECT_EQ(Last(1).broken->culprit.task, kWorker1);
  EXPECT_THAT(Last(1).broken->cause, HasSubstr("SIGTERM"));
  SendJoin(1, kChief, 5);
  SendJoin(2, kWorker0, 5);
  EXPECT_FALSE(roster_->view()) << "all are needed";
  SendJoin(4, kWorker1, -1, 2);
  EXPECT_TRUE(roster_->view());
  EXPECT_FALSE(Last(1).leave) << "training continues";
}

TEST_F(RosterTest, ATerminatedTaskIsNotWaitedForIfFewerAreEnough) {
  Open({.tasks = {kChief, kWorker0, kWorker1}, .min_replicas = 2});
  SendJoin(1, kChief, 0);
  SendJoin(2, kWorker0);
  SendJoin(3, kWorker1);
  ASSERT_TRUE(roster_->view());
  Send(3, {.away = true});
  EXPECT_FALSE(roster_->view());
  SendJoin(1, kChief, 5);
  SendJoin(2, kWorker0, 5);
  ASSERT_TRUE(roster_->view()) << "no time has passed";
  EXPECT_EQ(roster_->view()->replicas, 2);
  SendJoin(4, kWorker1, -1, 2);
  EXPECT_FALSE(roster_->view()) << "a restarted task joins like any other";
}

// A roster whose chief has written its last checkpoint.
class TrainedRosterTest : public RosterTest {
 protected:
  void SetUp() override {
    Open({.tasks = {kChief, kWorker0, kEvaluator}, .rendezvous_seconds = 50});
    SendJoin(1, kChief, 0);
    SendJoin(2, kWorker0);
    SendJoin(3, kEvaluator);
    ASSERT_TRUE(roster_->view());
    Deliver(roster_->OnTrained(now_));
  }
  void WaitWithAllBut(Roster::Connection silent, double seconds) {
    for (const double end = now_ + seconds; now_ < end;) {
      for (const Roster::Connection each : {1, 2, 3}) {
        if (each != silent) Beat(each);
      }
      Wait(1);
    }
  }
};

TEST_F(TrainedRosterTest, TheEvaluatorIsInformedAndTheOthersWaitForIt) {
  EXPECT_TRUE(Last(3).trained);
  EXPECT_FALSE(Last(1).trained || Last(1).leave);
  EXPECT_FALSE(Last(2).trained || Last(2).leave);
  WaitWithAllBut(0, 1000);
  EXPECT_EQ(*roster_->evaluated(now_), false) << "the evaluator has not finished";
  Send(3, {.leave = true});
  EXPECT_TRUE(Last(3).leave);
  EXPECT_EQ(*roster_->evaluated(now_), true);
  EXPECT_TRUE(roster_->view()) << "a replacement of the chief needs the others";
  Deliver(roster_->OnEnd(now_));
  EXPECT_TRUE(Last(2).leave);
}

// Those that were started again while the chief ends would otherwise end without having trained.
TEST_F(TrainedRosterTest, AStopIsNoEndOfTheTraining) {
  Deliver(roster_->OnEnd(now_, /*stopped=*/true));
  EXPECT_FALSE(Last(2).leave);
  EXPECT_THAT(Last(2).refused, testing::HasSubstr("stopped training before its end"));
  EXPECT_TRUE(Last(3).leave) << "an evaluator knows by `trained`";
  SendJoin(5, kWorker0, -1, 2);
  EXPECT_EQ(Last(5), Message()) << "it waits for the next chief";
}

TEST_F(TrainedRosterTest, ARestartedEvaluatorIsInformedToo) {
  Close(3);
  WaitWithAllBut(3, 40);
  EXPECT_EQ(*roster_->evaluated(now_), false);
  SendJoin(4, kEvaluator, -1, 2);
  EXPECT_TRUE(Last(4).trained);
  Send(4, {.leave = true});
  EXPECT_EQ(*roster_->evaluated(now_), true);
}

TEST_F(TrainedRosterTest, AnAbsentEvaluatorIsNamed) {
  Close(3);
  WaitWithAllBut(3, 51);
  const auto evaluated = roster_->evaluated(now_);
  EXPECT_EQ(evaluated.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(ToStd(evaluated.status().message()),
              AllOf(HasSubstr("evaluator-0"), HasSubstr("muster evaluate")));
  EXPECT_TRUE(roster_->status().ok());
}

TEST_F(TrainedRosterTest, WaitingForAViewDoesNotTimeOut) {
  Close(2);  // no replacement is needed: training is complete
  WaitWithAllBut(2, 100);
  EXPECT_TRUE(roster_->status().ok()) << roster_->status();
  Send(3, {.leave = true});
  EXPECT_EQ(*roster_->evaluated(now_), true);
}

}  // namespace
}  // namespace muster::membership
