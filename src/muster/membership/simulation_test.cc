// Runs the Roster through the seeded histories of simulated_members.h; planted bugs show that each
// invariant can fail.
#include <cstdio>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "muster/base/test_size.h"
#include "muster/membership/simulated_members.h"

namespace muster::membership {
namespace {

TEST(Simulation, TheInvariantsHold) {
  for (int seed = 1; seed <= SimulatedHistories(); ++seed) {
    ASSERT_EQ(SimulatedMembers(static_cast<uint64_t>(seed)).Run(), "") << "seed " << seed;
  }
}

struct PlantedBug {
  const char* name;
  const char* invariant;  // the one that the bug violates
  Tamper tamper;
};

using Outgoing = std::vector<Roster::Outgoing>;

void BeginsAtTheFirstGenerationAgain(RosterSpec* spec) { spec->first_generation = 1; }

void ContinuesWithoutAll(RosterSpec* spec) {
  spec->min_replicas = 1;
  spec->settle_seconds = 0;
}

void ForgetsTheLastGeneration(Message* message) {
  if (message->join) message->join->last_generation = 0;
}

// The roster sees the same incarnation of every task; the true one is sent as the address.
void HidesIncarnations(Message* message) {
  if (!message->join) return;
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

void TakesAllForEquallyFar(Outgoing* outgoing) {
  for (auto& each : *outgoing) {
    if (!each.message.view) continue;
    View& view = *each.message.view;
    const int64_t newest = view.members[static_cast<size_t>(view.source())].step;
    for (Member& member : view.members) member.step = newest;
  }
}

void GivesEachAnOrderOfItsOwn(Outgoing* outgoing) {
  for (auto& each : *outgoing) {
    if (each.message.view && each.to % 2 == 0) {
      std::swap(each.message.view->members.front(), each.message.view->members.back());
    }
  }
}

void KeepsABreakToItself(Outgoing* outgoing) {
  for (auto& each : *outgoing) {
    if (!each.close) each.message.broken.reset();
  }
}

void SaysOnlyThatItFailed(Outgoing* outgoing) {
  for (auto& each : *outgoing) {
    if (each.message.refused.empty()) continue;
    each.message.refused.clear();
    each.message.leave = true;
  }
}

void GivesUpSoon(RosterSpec* spec) { spec->rendezvous_seconds = 5; }

// The first violation of the bug's invariant in up to 2000 histories; "" for none.
std::string FirstViolation(const PlantedBug& bug, int* seed) {
  for (*seed = 1; *seed <= 2000; ++*seed) {
    std::string violation = SimulatedMembers(static_cast<uint64_t>(*seed), bug.tamper).Run();
    if (violation.starts_with(bug.invariant)) return violation;
  }
  return "";
}

TEST(Simulation, EachPlantedBugIsCaught) {
  const PlantedBug bugs[] = {
      {"begins at the first generation again",
       "generations grow",
       {.spec = BeginsAtTheFirstGenerationAgain, .in = ForgetsTheLastGeneration}},
      {"continues without all", "state", {.spec = ContinuesWithoutAll}},
      {"continues without all, twice", "one content", {.spec = ContinuesWithoutAll}},
      {"gives up soon", "named", {.spec = GivesUpSoon}},
      {"ignores incarnations", "newest", {.in = HidesIncarnations, .out = ShowsIncarnations}},
      {"takes all for equally far", "ends", {.out = TakesAllForEquallyFar}},
      {"gives each an order of its own", "one view", {.out = GivesEachAnOrderOfItsOwn}},
      {"keeps a break to itself", "named", {.out = KeepsABreakToItself}},
      {"takes a failure for the end", "truth", {.out = SaysOnlyThatItFailed}},
      {"sees no silence", "ends", {.never_ticks = true}},
  };
  std::set<std::string> shown;
  for (const PlantedBug& bug : bugs) {
    int seed = 0;
    const std::string violation = FirstViolation(bug, &seed);
    EXPECT_NE(violation, "") << bug.name << " was not caught";
    std::printf("  %-34s seed %4d  %s\n", bug.name, seed, violation.c_str());
    shown.insert(bug.invariant);
  }
  EXPECT_EQ(shown, (std::set<std::string>{"generations grow", "one view", "newest", "one content",
                                          "state", "truth", "named", "ends"}));
}

}  // namespace
}  // namespace muster::membership
