// Runs the Roster through the seeded histories of simulated_members.h; planted bugs show that each
// invariant can fail.
#include "muster/base/simulation.h"

#include <atomic>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "muster/membership/simulated_members.h"

namespace muster::membership {
namespace {

TEST(Simulation, TheInvariantsHold) {
  std::atomic<int> changes = 0;
  ExpectInvariantsHold([&](uint64_t seed) {
    SimulatedMembers members(seed);
    std::string violation = members.Run();
    changes += members.changes();
    return violation;
  });
  EXPECT_GT(changes, 0) << "members only got whole views";
}

PlantedBug Bug(const char* name, const char* invariant, const Tamper& tamper) {
  return {name, invariant,
          [tamper](uint64_t seed) { return SimulatedMembers(seed, tamper).Run(); }};
}

using Outgoing = std::vector<Roster::Outgoing>;

void BeginsAtTheFirstGenerationAgain(RosterSpec* spec) { spec->first_generation = 1; }

void ContinuesWithoutAll(RosterSpec* spec) {
  spec->min_replicas = 1;
  spec->settle_seconds = 0;
}

void ForgetsTheLastGeneration(Message* message) {
  if (message->join) message->join->last_generation = 0;
}

// Shows the roster incarnation 1 of every task; the address carries the true one.
void HidesIncarnations(Message* message) {
  if (!message->join) return;
  message->join->known_view = 0;  // for whole views, in which they are shown again
  Member& member = message->join->member;
  member.address = StrCat(member.id.incarnation);
  member.id.incarnation = 1;
}

void ShowsIncarnations(Outgoing* outgoing) {
  for (auto& each : *outgoing) {
    if (!each.message.view) continue;
    for (Member& member : each.message.view->members) {
      member.id.incarnation = std::stoll(member.address);
    }
  }
}

void WantsWholeViews(Message* message) {
  if (message->join) message->join->known_view = 0;
}

void LeavesNewMembersOut(Outgoing* outgoing) {
  for (auto& each : *outgoing) {
    if (each.message.change) each.message.change->members.clear();
  }
}

void ReportsTheSameStepForAll(Outgoing* outgoing) {
  for (auto& each : *outgoing) {
    if (!each.message.view) continue;
    View& view = *each.message.view;
    const int64_t newest = view.members[static_cast<size_t>(view.source())].step;
    for (Member& member : view.members) member.step = newest;
  }
}

void SendsMembersInDifferentOrders(Outgoing* outgoing) {
  for (auto& each : *outgoing) {
    if (each.message.view && each.to % 2 == 0) {
      std::swap(each.message.view->members.front(), each.message.view->members.back());
    }
  }
}

void DropsBreaks(Outgoing* outgoing) {
  for (auto& each : *outgoing) {
    if (!each.close) each.message.broken.reset();
  }
}

void ReportsFailureAsSuccess(Outgoing* outgoing) {
  for (auto& each : *outgoing) {
    if (each.message.refused.empty()) continue;
    each.message.refused.clear();
    each.message.leave = true;
  }
}

void GivesUpSoon(RosterSpec* spec) { spec->rendezvous_seconds = 5; }

TEST(Simulation, EachPlantedBugIsCaught) {
  const std::vector<PlantedBug> bugs = {
      Bug("begins at the first generation again", "generations grow",
          {.spec = BeginsAtTheFirstGenerationAgain, .in = ForgetsTheLastGeneration}),
      Bug("continues without all", "state", {.spec = ContinuesWithoutAll}),
      Bug("continues without all, twice", "one content", {.spec = ContinuesWithoutAll}),
      Bug("gives up soon", "named", {.spec = GivesUpSoon}),
      Bug("ignores incarnations", "newest", {.in = HidesIncarnations, .out = ShowsIncarnations}),
      Bug("reports the same step for all", "ends",
          {.in = WantsWholeViews, .out = ReportsTheSameStepForAll}),
      Bug("sends members in different orders", "one view",
          {.in = WantsWholeViews, .out = SendsMembersInDifferentOrders}),
      Bug("leaves new members out of a change", "one view", {.out = LeavesNewMembersOut}),
      Bug("does not report breaks", "named", {.out = DropsBreaks}),
      Bug("reports a failure as a success", "truth", {.out = ReportsFailureAsSuccess}),
      Bug("does not notice silence", "ends", {.never_ticks = true}),
  };
  ExpectBugsAreCaught(
      bugs, 2000,
      {"generations grow", "one view", "newest", "one content", "state", "truth", "named", "ends"});
}

}  // namespace
}  // namespace muster::membership
