// Roster: how views form and break, and which tasks are refused.
#include "muster/membership/roster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/membership/roster_test_support.h"
#include "muster/membership/view_change.h"

namespace muster::membership {
namespace {

using job::TaskId;
using job::TaskType;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(RosterTest, AViewFormsWhenAllHaveJoined) {
  OpenAll();
  SendJoin(3, kWorker1);
  SendJoin(1, kChief, 40);
  EXPECT_FALSE(roster_->view());
  EXPECT_THAT(sent_, IsEmpty());
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
TEST_F(RosterTest, AJoinTakesTwoMessagesPerMember) {
  for (const int n : {2, 8, 32, 100}) {
    RosterSpec spec;
    for (int i = 0; i < n; ++i) {
      spec.tasks.push_back(i == 0 ? kChief : TaskId{TaskType::kWorker, i - 1});
    }
    Open(spec);
    sent_.clear();
    for (int i = 0; i < n; ++i) {
      EXPECT_THAT(sent_, IsEmpty()) << "a view is sent when all have joined";
      SendJoin(static_cast<Roster::Connection>(i + 1), spec.tasks[static_cast<size_t>(i)],
               i == 0 ? 0 : -1);
    }
    ASSERT_EQ(std::ssize(sent_), n);
    for (const auto& [to, messages] : sent_) {
      ASSERT_EQ(messages.size(), 1u) << "connection " << to;
      EXPECT_EQ(std::ssize(messages[0].view.value().members), n);
    }
  }
}

// docs/scale.md has these numbers: what the host sends when a member of n is lost and comes back.
TEST_F(RosterTest, AViewThatMembersHaveCostsThemOnlyWhatHasChanged) {
  for (const int n : {8, 32, 100, 1000}) {
    RosterSpec spec;
    for (int i = 0; i < n; ++i) {
      spec.tasks.push_back(i == 0 ? kChief : TaskId{TaskType::kWorker, i - 1});
    }
    Open(spec);
    const auto join = [&](int i, Roster::Connection from, int64_t step, int64_t incarnation) {
      SendJoin(from, spec.tasks[static_cast<size_t>(i)], step, incarnation);
    };
    known_view_ = 0;
    for (int i = 0; i < n; ++i) join(i, static_cast<Roster::Connection>(i + 1), 0, 1);
    const View first = roster_->view().value();
    Close(static_cast<Roster::Connection>(n));
    sent_.clear();
    known_view_ = first.generation;
    for (int i = 0; i + 1 < n; ++i) {
      join(i, static_cast<Roster::Connection>(i + 1), 100'000'000 + (i == 0), 1);
    }
    known_view_ = 0;
    join(n - 1, static_cast<Roster::Connection>(n + 1), -1, 2);
    const View second = roster_->view().value();
    size_t bytes = 0;
    for (int i = 0; i + 1 < n; ++i) {
      const Message sent = Last(static_cast<Roster::Connection>(i + 1));
      ASSERT_TRUE(sent.change) << i;
      EXPECT_FALSE(sent.view);
      bytes += Print(sent).size();
      if (i == 1) {
        EXPECT_EQ(ApplyChange(first, *sent.change).value(), second);
      }
    }
    EXPECT_EQ(Last(static_cast<Roster::Connection>(n + 1)).view, second) << "it has no view";
    EXPECT_LT(bytes, static_cast<size_t>(n) * 400);
  }
}

// A member that missed a view, or that comes from another host, gets the whole.
TEST_F(RosterTest, AMemberWithAnotherViewGetsTheWhole) {
  Begin();
  for (const int64_t known : {int64_t{0}, roster_->view()->generation - 1, int64_t{77}}) {
    Close(3);
    sent_.clear();
    known_view_ = known;
    SendJoin(1, kChief, 7);
    SendJoin(2, kWorker0, 7);
    SendJoin(3, kWorker1, 7);
    ASSERT_TRUE(roster_->view());
    for (Roster::Connection each : {1, 2, 3}) {
      EXPECT_EQ(Last(each).view, roster_->view());
      EXPECT_FALSE(Last(each).change);
    }
  }
}

TEST_F(RosterTest, ParameterServersComeAfterReplicasAndAreRequired) {
  Open({.tasks = {kPs, kChief, kWorker0}});
  SendJoin(1, kChief, 0);
  SendJoin(2, kWorker0);
  EXPECT_FALSE(roster_->view());
  SendJoin(3, kPs);
  ASSERT_TRUE(roster_->view());
  EXPECT_EQ(roster_->view()->replicas, 2);
  EXPECT_EQ(roster_->view()->GetRank(kPs), 2);
}

TEST_F(RosterTest, AnEvaluatorIsInNoViewAndBreaksNone) {
  Open({.tasks = {kChief, kEvaluator}});
  SendJoin(1, kChief, 0);
  ASSERT_TRUE(roster_->view()) << "a view does not wait for an evaluator";
  SendJoin(2, kEvaluator);
  ASSERT_TRUE(Last(2).view);
  EXPECT_EQ(Last(2).view->GetRank(kEvaluator), -1);
  Close(2);
  EXPECT_TRUE(roster_->view());
}

TEST_F(RosterTest, ALostMemberIsNamedToAllOthers) {
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

TEST_F(RosterTest, AMemberThatIsSilentForALeaseIsLost) {
  Begin();
  Wait(9);
  Beat(1);
  Beat(3);
  Wait(2);
  ASSERT_TRUE(Last(1).broken);
  EXPECT_EQ(Last(1).broken->culprit.task, kWorker0);
  EXPECT_THAT(Last(1).broken->cause, HasSubstr("silent for 10 s"));
  EXPECT_TRUE(closed_.contains(2)) << "the silent member finds its connection closed when it wakes";
  EXPECT_EQ(closed_.size(), 1U);
}

TEST_F(RosterTest, ANewIncarnationFencesTheEarlierOne) {
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

TEST_F(RosterTest, AReportBreaksOnlyTheGenerationThatItNames) {
  Begin();
  Send(2, {.failure = Broken{.generation = 0, .culprit = {kWorker1, 1}, .cause = "late news"}});
  EXPECT_TRUE(roster_->view());
  Send(2, {.failure = Broken{.generation = 1, .culprit = {kWorker1, 1}, .cause = "closed"}});
  ASSERT_TRUE(Last(1).broken);
  EXPECT_THAT(Last(1).broken->cause, AllOf(HasSubstr("closed"), HasSubstr("seen by worker-0")));
  EXPECT_EQ(Last(1).broken->culprit.task, kWorker1);
  // The reported member is alive: it joins again like the others.
  SendJoin(1, kChief, 1);
  SendJoin(2, kWorker0, 1);
  SendJoin(3, kWorker1, 1);
  EXPECT_TRUE(roster_->view());
}

TEST_F(RosterTest, AHostThatSleptPastTheLeaseBreaksItsGeneration) {
  Begin();
  now_ += 11;  // its members have given it up, even if their connections have not closed
  Send(1, {});
  EXPECT_FALSE(roster_->view());
  ASSERT_EQ(sent_[2].size(), 1);
  EXPECT_THAT(sent_[2][0].broken->cause, HasSubstr("did not run for 11 s"));
}

TEST_F(RosterTest, ARestartedHostContinuesWithLaterGenerations) {
  OpenAll();
  SendJoin(1, kChief, 100, 2);  // the step of its checkpoint
  last_generation_ = 6;
  SendJoin(2, kWorker0, 137);
  SendJoin(3, kWorker1, 136);
  ASSERT_TRUE(roster_->view());
  EXPECT_EQ(roster_->view()->generation, 7);
  EXPECT_EQ(roster_->view()->source(), 1) << "the surviving member is ahead of the checkpoint";
}

TEST_F(RosterTest, ASmallerViewFormsAfterTheSettleTime) {
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
  // The third member leaves permanently: no view waits for it.
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

TEST_F(RosterTest, AViewDoesNotWaitForTasksThatTheLastViewLacked) {
  Open({.tasks = {kChief, kWorker0, kWorker1}, .min_replicas = 1});
  SendJoin(1, kChief, 0);
  Wait(3.5);
  ASSERT_TRUE(roster_->view());
  EXPECT_EQ(roster_->view()->replicas, 1);
  // One worker joins: the view waits for connected members, but not for the other worker.
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

TEST_F(RosterTest, TheRendezvousTimeoutEndsTrainingAndNamesTheMissingTasks) {
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
  EXPECT_THAT(sent_[1][1].refused, AllOf(HasSubstr("300 s"), HasSubstr("worker-1")));
  SendJoin(4, kWorker1);
  EXPECT_THAT(Last(4).refused, HasSubstr("300 s")) << "a late task does not succeed";
  EXPECT_FALSE(Last(4).leave);
}

TEST_F(RosterTest, ADifferentModelIsRefusedAndBothTasksAreNamed) {
  OpenAll();
  SendJoin(1, kChief, 0);
  SendJoin(2, kWorker0, -1, 1, "model 2");
  EXPECT_THAT(Last(2).refused,
              AllOf(HasSubstr("worker-0 has [model 2]"), HasSubstr("chief-0 has [model 1]")));
  SendJoin(9, {TaskType::kWorker, 7});
  EXPECT_THAT(Last(9).refused, AllOf(HasSubstr("no worker-7"), HasSubstr("worker-1")));
}

TEST_F(RosterTest, ADifferenceIsReportedByBothTasksAndAtTheTimeout) {
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

TEST_F(RosterTest, UnknownSettingsAreNoDifference) {
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
  EXPECT_TRUE(Last(4).leave) << "a late task is told that training is over";
}

TEST_F(RosterTest, TrainingEndsAfterGenerationsWithoutAStep) {
  Begin();
  const double begin = now_;
  for (int i = 0; i < 5; ++i) {
    ASSERT_FALSE(roster_->over()) << i;
    ASSERT_TRUE(roster_->view()) << i;
    Send(2, {.failure = Broken{.generation = roster_->view()->generation,
                               .culprit = {kWorker1, 1},
                               .cause = "cannot be reached"}});
    SendJoin(1, kChief, 0);
    SendJoin(2, kWorker0, 0);
    SendJoin(3, kWorker1, 0);
    if (!roster_->view()) Wait(8);
  }
  EXPECT_TRUE(roster_->over());
  EXPECT_GT(now_ - begin, 13);  // a short interruption of the network does not end it
  EXPECT_THAT(roster_->status().message(),
              AllOf(HasSubstr("worker-1"), HasSubstr("cannot be reached")));
}

}  // namespace
}  // namespace muster::membership
