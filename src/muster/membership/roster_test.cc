#include "muster/membership/roster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::membership {
namespace {

using job::TaskId;
using job::TaskType;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr TaskId kChief = {TaskType::kChief, 0};
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
constexpr TaskId kPs = {TaskType::kPs, 0};
constexpr TaskId kEvaluator = {TaskType::kEvaluator, 0};

// A roster, with all messages that it has sent to each connection.
class RosterTest : public testing::Test {
 protected:
  void Open(RosterSpec spec) { roster_.emplace(std::move(spec)); }
  void OpenAll() { Open({.tasks = {kChief, kWorker0, kWorker1}}); }

  void Take(std::vector<Roster::Outgoing> outgoing) {
    for (Roster::Outgoing& each : outgoing) {
      said_[each.to].push_back(std::move(each.message));
      if (each.close) closed_.insert(each.to);
    }
  }
  void Send(Roster::Connection from, const Message& message) {
    Take(roster_->OnMessage(from, message, now_));
  }
  void SendJoin(Roster::Connection from, TaskId task, int64_t step = -1, int64_t incarnation = 1,
                const std::string& agreement = "model 1") {
    Send(from, {.join = Join{.member = {.id = {task, incarnation}, .address = "a", .step = step},
                             .last_generation = last_generation_,
                             .agreement = agreement}});
  }
  void Close(Roster::Connection from) {
    Take(roster_->OnClosed(from, "closed its connection", now_));
  }
  void Wait(double seconds) {
    for (double end = now_ + seconds; now_ < end;) {
      now_ = std::min(end, roster_->wake_at());
      Take(roster_->OnTick(now_));
    }
  }
  void Beat(Roster::Connection from) { Send(from, {}); }
  Message Last(Roster::Connection to) { return said_[to].empty() ? Message() : said_[to].back(); }
  // Makes a view of chief, worker-0 and worker-1 on connections 1, 2 and 3, and forgets the
  // messages so far.
  void Begin() {
    OpenAll();
    SendJoin(1, kChief, 0);
    SendJoin(2, kWorker0);
    SendJoin(3, kWorker1);
    ASSERT_TRUE(roster_->view());
    said_.clear();
  }

  std::optional<Roster> roster_;
  std::map<Roster::Connection, std::vector<Message>> said_;
  std::set<Roster::Connection> closed_;
  double now_ = 100;
  int64_t last_generation_ = 0;
};

TEST_F(RosterTest, AViewFormsWhenAllHaveJoined) {
  OpenAll();
  SendJoin(3, kWorker1);
  SendJoin(1, kChief, 40);
  EXPECT_FALSE(roster_->view());
  EXPECT_THAT(said_, IsEmpty());
  SendJoin(2, kWorker0);
  ASSERT_TRUE(roster_->view());
  for (Roster::Connection each : {1, 2, 3}) {
    const auto view = Last(each).view;
    ASSERT_TRUE(view);
    EXPECT_EQ(view->generation, 1);
    EXPECT_EQ(view->replicas, 3);
    EXPECT_EQ(view->GetRank(kChief), 0);
    EXPECT_EQ(view->GetRank(kWorker1), 2);
    EXPECT_EQ(view->source(), 0) << "the chief alone has a state";
  }
}

// docs/scale.md has this number: of n members, each sends one message and gets one.
TEST_F(RosterTest, AJoinIsTwoMessagesAMember) {
  for (const int n : {2, 8, 32, 100}) {
    RosterSpec spec;
    for (int i = 0; i < n; ++i) {
      spec.tasks.push_back(i == 0 ? kChief : TaskId{TaskType::kWorker, i - 1});
    }
    Open(spec);
    said_.clear();
    for (int i = 0; i < n; ++i) {
      EXPECT_THAT(said_, IsEmpty()) << "a view is sent when all have joined";
      SendJoin(static_cast<Roster::Connection>(i + 1), spec.tasks[static_cast<size_t>(i)],
               i == 0 ? 0 : -1);
    }
    ASSERT_EQ(std::ssize(said_), n);
    for (const auto& [to, messages] : said_) {
      ASSERT_EQ(messages.size(), 1u) << "connection " << to;
      EXPECT_EQ(std::ssize(messages[0].view.value().members), n);
    }
  }
}

TEST_F(RosterTest, ParameterServersComeAfterReplicasAndAreNeeded) {
  Open({.tasks = {kPs, kChief, kWorker0}});
  SendJoin(1, kChief, 0);
  SendJoin(2, kWorker0);
  EXPECT_FALSE(roster_->view());
  SendJoin(3, kPs);
  ASSERT_TRUE(roster_->view());
  EXPECT_EQ(roster_->view()->replicas, 2);
  EXPECT_EQ(roster_->view()->GetRank(kPs), 2);
}

TEST_F(RosterTest, AnEvaluatorOnlyLooksOn) {
  Open({.tasks = {kChief, kEvaluator}});
  SendJoin(1, kChief, 0);
  ASSERT_TRUE(roster_->view()) << "nobody waits for an evaluator";
  SendJoin(2, kEvaluator);
  ASSERT_TRUE(Last(2).view);
  EXPECT_EQ(Last(2).view->GetRank(kEvaluator), -1);
  Close(2);
  EXPECT_TRUE(roster_->view());
}

TEST_F(RosterTest, ALostMemberBreaksTheGenerationForAllWithItsName) {
  Begin();
  Close(3);
  for (Roster::Connection each : {1, 2}) {
    const auto broken = Last(each).broken;
    ASSERT_TRUE(broken);
    EXPECT_EQ(broken->generation, 1);
    EXPECT_THAT(ToStatus(*broken).message(),
                AllOf(HasSubstr("generation 1"), HasSubstr("worker-1"), HasSubstr("closed")));
  }
  EXPECT_FALSE(roster_->view());
  SendJoin(1, kChief, 7);
  SendJoin(2, kWorker0, 8);
  EXPECT_FALSE(roster_->view());
  SendJoin(4, kWorker1, -1, 2);
  ASSERT_TRUE(roster_->view());
  EXPECT_EQ(roster_->view()->generation, 2);
  EXPECT_EQ(roster_->view()->source(), 1) << "worker-0 is a step ahead";
}

TEST_F(RosterTest, SilenceForALeaseIsDeath) {
  Begin();
  Wait(9);
  Beat(1);
  Beat(3);
  Wait(2);
  ASSERT_TRUE(Last(1).broken);
  EXPECT_EQ(Last(1).broken->culprit.task, kWorker0);
  EXPECT_THAT(Last(1).broken->cause, HasSubstr("silent for 10 s"));
  EXPECT_TRUE(closed_.contains(2)) << "the sleeper finds its connection closed when it wakes";
  EXPECT_EQ(closed_.size(), 1U);
}

TEST_F(RosterTest, AnotherIncarnationFencesTheOneBefore) {
  Begin();
  SendJoin(4, kWorker1, -1, 2);
  ASSERT_TRUE(Last(1).broken);
  EXPECT_THAT(Last(1).broken->cause, HasSubstr("started again"));
  EXPECT_TRUE(closed_.contains(3));
  // The old incarnation wakes up and wants to join again.
  SendJoin(5, kWorker1, 9, 1);
  EXPECT_THAT(Last(5).refused, HasSubstr("replaced by incarnation 2"));
  EXPECT_TRUE(closed_.contains(5));
}

TEST_F(RosterTest, AReportOfAMemberBreaksItsGenerationOnly) {
  Begin();
  Send(2, {.failure = Broken{.generation = 0, .culprit = {kWorker1, 1}, .cause = "late news"}});
  EXPECT_TRUE(roster_->view());
  Send(2, {.failure = Broken{.generation = 1, .culprit = {kWorker1, 1}, .cause = "closed"}});
  ASSERT_TRUE(Last(1).broken);
  EXPECT_THAT(Last(1).broken->cause, AllOf(HasSubstr("closed"), HasSubstr("seen by worker-0")));
  EXPECT_EQ(Last(1).broken->culprit.task, kWorker1);
  // The reported member is well: it joins again like the others.
  SendJoin(1, kChief, 1);
  SendJoin(2, kWorker0, 1);
  SendJoin(3, kWorker1, 1);
  EXPECT_TRUE(roster_->view());
}

TEST_F(RosterTest, AHostThatSleptPastTheLeaseEndsItsGeneration) {
  Begin();
  now_ += 11;  // its members have given it up, even if their connections have not closed
  Send(1, {});
  EXPECT_FALSE(roster_->view());
  ASSERT_EQ(said_[2].size(), 1);
  EXPECT_THAT(said_[2][0].broken->cause, HasSubstr("did not run for 11 s"));
}

TEST_F(RosterTest, AHostThatWasStartedAgainContinuesWithLaterGenerations) {
  OpenAll();
  SendJoin(1, kChief, 100, 2);  // the step of its checkpoint
  last_generation_ = 6;
  SendJoin(2, kWorker0, 137);
  SendJoin(3, kWorker1, 136);
  ASSERT_TRUE(roster_->view());
  EXPECT_EQ(roster_->view()->generation, 7);
  EXPECT_EQ(roster_->view()->source(), 1) << "survivors know more than the checkpoint";
}

TEST_F(RosterTest, FewerThanAllBeginAfterAWhileWhereThatIsAllowed) {
  Open({.tasks = {kChief, kWorker0, kWorker1}, .min_replicas = 2});
  SendJoin(1, kChief, 0);
  SendJoin(2, kWorker0);
  Wait(2.5);
  EXPECT_FALSE(roster_->view());
  Beat(1);
  Beat(2);
  Wait(1);
  ASSERT_TRUE(roster_->view());
  EXPECT_EQ(roster_->view()->replicas, 2);
  // A third member joins: the view breaks as planned.
  SendJoin(3, kWorker1);
  ASSERT_TRUE(Last(1).broken);
  EXPECT_TRUE(Last(1).broken->planned);
  SendJoin(1, kChief, 5);
  SendJoin(2, kWorker0, 5);
  EXPECT_EQ(roster_->view()->replicas, 3);
  // The third member leaves for good: no view waits for it.
  Send(3, {.leave = true});
  EXPECT_TRUE(Last(3).leave);
  ASSERT_TRUE(Last(1).broken);
  SendJoin(1, kChief, 6);
  SendJoin(2, kWorker0, 6);
  ASSERT_TRUE(roster_->view());
  EXPECT_EQ(roster_->view()->replicas, 2);
  // Without the chief there is no view, however many workers there are.
  Close(1);
  SendJoin(2, kWorker0, 7);
  Wait(5);
  EXPECT_FALSE(roster_->view());
}

TEST_F(RosterTest, WhoWasNotInTheLastViewIsNotWaitedFor) {
  Open({.tasks = {kChief, kWorker0, kWorker1}, .min_replicas = 1});
  SendJoin(1, kChief, 0);
  Wait(3.5);
  ASSERT_TRUE(roster_->view());
  EXPECT_EQ(roster_->view()->replicas, 1);
  // One worker joins: connected members are waited for, the other worker is not.
  SendJoin(2, kWorker0);
  EXPECT_FALSE(roster_->view());
  SendJoin(1, kChief, 5);
  ASSERT_TRUE(roster_->view());
  EXPECT_EQ(roster_->view()->replicas, 2);
  // A member that is lost may join again.
  Close(2);
  SendJoin(1, kChief, 6);
  EXPECT_FALSE(roster_->view());
  Beat(1);
  Wait(3.5);
  ASSERT_TRUE(roster_->view());
  EXPECT_EQ(roster_->view()->replicas, 1);
}

TEST_F(RosterTest, TooLongAWaitEndsTrainingAndNamesWhoIsMissing) {
  OpenAll();
  SendJoin(1, kChief, 0);
  SendJoin(2, kWorker0);
  for (int i = 0; i < 301 && !roster_->over(); ++i) {
    Wait(1);
    if (i == 2) {
      EXPECT_EQ(Last(1).waiting, "worker-1");
    }
    Beat(1);
    Beat(2);
  }
  EXPECT_EQ(roster_->status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(said_[1][1].refused, AllOf(HasSubstr("300 s"), HasSubstr("worker-1")));
  SendJoin(4, kWorker1);
  EXPECT_THAT(Last(4).refused, HasSubstr("300 s")) << "who comes too late does not succeed";
  EXPECT_FALSE(Last(4).leave);
}

TEST_F(RosterTest, DifferentModelsAreRefusedWithBothNamed) {
  OpenAll();
  SendJoin(1, kChief, 0);
  SendJoin(2, kWorker0, -1, 1, "model 2");
  EXPECT_THAT(Last(2).refused,
              AllOf(HasSubstr("worker-0 has [model 2]"), HasSubstr("chief-0 has [model 1]")));
  SendJoin(9, {TaskType::kWorker, 7});
  EXPECT_THAT(Last(9).refused, AllOf(HasSubstr("no worker-7"), HasSubstr("worker-1")));
}

TEST_F(RosterTest, ADifferenceIsNamedAtBothEndsAndWhenTimeIsUp) {
  Open({.tasks = {kChief, kWorker0}, .agreement = "epochs=5; seed=1; data=4 files"});
  SendJoin(1, kChief, 0, 1, "epochs=5; seed=1; data=4 files");
  for (const Roster::Connection each : {2, 3}) {
    SendJoin(each, kWorker0, -1, 1, "epochs=1; seed=1; data=4 files");
    EXPECT_THAT(Last(each).refused, HasSubstr("worker-0 has [epochs 1], chief-0 has [epochs 5]:"));
  }
  EXPECT_THAT(roster_->ConsumeRefusals(), ElementsAre(AllOf(HasSubstr("refused worker-0: "),
                                                            HasSubstr("chief-0 has [epochs 5]"))));
  EXPECT_THAT(roster_->ConsumeRefusals(), IsEmpty());
  for (int i = 0; i < 301 && !roster_->over(); ++i) {
    Wait(1);
    Beat(1);
  }
  EXPECT_THAT(ToStd(roster_->status().message()),
              AllOf(HasSubstr("waited 300 s for worker-0"), HasSubstr("has [epochs 1]")));
}

TEST_F(RosterTest, WhatATaskCannotKnowIsNoDifference) {
  Open({.tasks = {kChief, kWorker0, kEvaluator}, .agreement = "replicas=2; data=4 files"});
  SendJoin(1, kChief, 0, 1, "replicas=2; data=4 files");
  SendJoin(5, kEvaluator, -1, 1, "replicas=?; data=?");
  EXPECT_EQ(Last(5).refused, "");
  SendJoin(2, kWorker0, -1, 1, "replicas=2; data=4 files");
  EXPECT_TRUE(roster_->view());
}

TEST_F(RosterTest, TheChiefEndsTrainingForAll) {
  Begin();
  Send(1, {.leave = true});
  EXPECT_TRUE(roster_->over());
  EXPECT_TRUE(roster_->status().ok());
  for (Roster::Connection each : {1, 2, 3}) EXPECT_TRUE(Last(each).leave);
  EXPECT_THAT(closed_, ElementsAre(1, 2, 3));
  SendJoin(4, kWorker1, -1, 2);
  EXPECT_TRUE(Last(4).leave) << "who comes too late is told";
}

TEST_F(RosterTest, GenerationsThatNeverStepEnd) {
  Begin();
  for (int i = 0; i < 5; ++i) {
    ASSERT_FALSE(roster_->over()) << i;
    Send(2, {.failure = Broken{.generation = roster_->view()->generation,
                               .culprit = {kWorker1, 1},
                               .cause = "cannot be reached"}});
    SendJoin(1, kChief, 0);
    SendJoin(2, kWorker0, 0);
    SendJoin(3, kWorker1, 0);
  }
  EXPECT_TRUE(roster_->over());
  EXPECT_THAT(roster_->status().message(),
              AllOf(HasSubstr("worker-1"), HasSubstr("cannot be reached")));
}

// The network between two workers is cut, but the chief hears both.
class CutLinkTest : public RosterTest {
 protected:
  // Forms a view, then worker-1's report that it cannot reach worker-0 arrives.
  void MissEachOther(int64_t incarnation = 1) {
    SendJoin(3, kWorker1, 5, incarnation);
    SendJoin(1, kChief, 5);
    SendJoin(2, kWorker0, 5);
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

TEST_F(CutLinkTest, OneSideIsGivenUpByNameWhereTheOthersAreEnough) {
  Open({.tasks = {kChief, kWorker0, kWorker1}, .min_replicas = 2});
  MissEachOther();
  EXPECT_EQ(Last(3).refused, "") << "it may have been a moment";
  MissEachOther();
  EXPECT_THAT(Last(3).refused, AllOf(HasSubstr("worker-1"), HasSubstr("cannot reach worker-0"),
                                     HasSubstr("given up")));
  EXPECT_TRUE(closed_.contains(3));
  ASSERT_TRUE(Last(1).broken);
  EXPECT_EQ(Last(1).broken->culprit.task, kWorker1);
  SendJoin(1, kChief, 5);
  SendJoin(2, kWorker0, 5);
  ASSERT_TRUE(roster_->view()) << "nobody waits for it";
  EXPECT_EQ(roster_->view()->replicas, 2);
  // The replacement of worker-1 has only one attempt.
  MissEachOther(/*incarnation=*/2);
  EXPECT_THAT(Last(3).refused, HasSubstr("given up"));
}

TEST_F(CutLinkTest, WhereAllAreNeededTheEndNamesBoth) {
  OpenAll();
  for (int i = 0; i < 10 && roster_->status().ok(); ++i) {
    SendJoin(1, kChief, 5);
    SendJoin(2, kWorker0, 5);
    SendJoin(3, kWorker1, 5);
    if (!roster_->view()) break;
    last_generation_ = roster_->view()->generation;
    Broken failure = {.generation = last_generation_, .culprit = {kWorker0, 1}, .cause = "gone"};
    // The report may come from worker-1 itself, or from another that heard of it.
    const bool by_chief = i % 2 == 0;
    if (by_chief) failure.seen_by = MemberId{kWorker1, 1};
    Send(by_chief ? 1 : 3, {.failure = failure});
  }
  EXPECT_THAT(ToStd(roster_->status().message()),
              AllOf(HasSubstr("worker-0"), HasSubstr("seen by worker-1")));
}

TEST_F(RosterTest, WhoWasToldToEndIsReplacedWhereAllAreNeeded) {
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

TEST_F(RosterTest, WhoWasToldToEndIsNotWaitedForWhereFewerAreEnough) {
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
  EXPECT_FALSE(roster_->view()) << "it comes back as any other";
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
    Take(roster_->OnTrained(now_));
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

TEST_F(TrainedRosterTest, TheEvaluatorIsToldAndTheOthersWaitForIt) {
  EXPECT_TRUE(Last(3).trained);
  EXPECT_FALSE(Last(1).trained || Last(1).leave);
  EXPECT_FALSE(Last(2).trained || Last(2).leave);
  WaitWithAllBut(0, 1000);
  EXPECT_EQ(*roster_->evaluated(now_), false) << "it may take its time";
  Send(3, {.leave = true});
  EXPECT_TRUE(Last(3).leave);
  EXPECT_EQ(*roster_->evaluated(now_), true);
  EXPECT_TRUE(roster_->view()) << "the next host may need the others";
  Take(roster_->OnEnd(now_));
  EXPECT_TRUE(Last(2).leave);
}

TEST_F(TrainedRosterTest, AnEvaluatorThatIsStartedAgainIsToldToo) {
  Close(3);
  WaitWithAllBut(3, 40);
  EXPECT_EQ(*roster_->evaluated(now_), false);
  SendJoin(4, kEvaluator, -1, 2);
  EXPECT_TRUE(Last(4).trained);
  Send(4, {.leave = true});
  EXPECT_EQ(*roster_->evaluated(now_), true);
}

TEST_F(TrainedRosterTest, AnEvaluatorThatStaysAwayIsNamed) {
  Close(3);
  WaitWithAllBut(3, 51);
  const auto evaluated = roster_->evaluated(now_);
  EXPECT_EQ(evaluated.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(ToStd(evaluated.status().message()),
              AllOf(HasSubstr("evaluator-0"), HasSubstr("muster evaluate")));
  EXPECT_TRUE(roster_->status().ok());
}

TEST_F(TrainedRosterTest, NobodyIsGivenUpForWantOfAView) {
  Close(2);  // no replacement is needed: training is complete
  WaitWithAllBut(2, 100);
  EXPECT_TRUE(roster_->status().ok()) << roster_->status();
  Send(3, {.leave = true});
  EXPECT_EQ(*roster_->evaluated(now_), true);
}

}  // namespace
}  // namespace muster::membership
