// Runs parameter servers and the replicas that train by them through the seeded histories of
// simulated_training.h; planted bugs show that each invariant can fail.
#include <cstdio>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "muster/base/test_size.h"
#include "muster/ps/simulated_training.h"

namespace muster::ps {
namespace {

TEST(Simulation, TheInvariantsHold) {
  for (int seed = 1; seed <= SimulatedHistories(); ++seed) {
    ASSERT_EQ(SimulatedTraining(static_cast<uint64_t>(seed)).Run(), "") << "seed " << seed;
  }
}

struct PlantedBug {
  const char* name;
  const char* invariant;  // the one that the bug violates
  Tamper tamper;
};

// The first violation of the bug's invariant in up to 20000 histories; "" for none.
std::string FirstViolation(const PlantedBug& bug, int* seed) {
  for (*seed = 1; *seed <= 20000; ++*seed) {
    std::string violation = SimulatedTraining(static_cast<uint64_t>(*seed), bug.tamper).Run();
    if (violation.starts_with(bug.invariant)) return violation;
  }
  return "";
}

TEST(Simulation, EachPlantedBugIsCaught) {
  if (kUnderSanitizer)
    GTEST_SKIP() << "the release build looks for them, in thousands of histories";
  const PlantedBug bugs[] = {
      {"numbers pushes itself", "state", {.numbers_pushes_itself = true}},
      {"takes any generation", "live", {.takes_any_generation = true}},
      {"ignores incarnations", "live", {.ignores_incarnations = true}},
      {"others count at once", "together", {.others_count_at_once = true}},
      {"keeps breaks", "named", {.keeps_breaks = true}},
      {"lead first", "ends", {.leads_first = true}},
      {"saves without waiting", "together", {.saves_without_waiting = true}},
      {"forgets a position", "state", {.forgets_a_position = true}},
      {"lets one more pass", "bound", {.lets_one_more_pass = true}},
      {"waits for nobody", "once", {.waits_for_nobody = true}},
      {"forgets counts", "counts", {.forgets_counts = true}},
      {"passes one over", "state", {.passes_one_over = true}},
      {"takes stale gradients", "state", {.takes_stale = true}},
      {"scales nothing", "state", {.scales_nothing = true}},
      {"settles alone", "state", {.settles_alone = true}},
      {"gives up soon", "named", {.gives_up_soon = true}},
      {"never gives up", "ends", {.never_gives_up = true}},
  };
  std::set<std::string> shown;
  for (const PlantedBug& bug : bugs) {
    int seed = 0;
    const std::string violation = FirstViolation(bug, &seed);
    EXPECT_NE(violation, "") << bug.name << " was not caught";
    std::printf("  %-34s seed %4d  %s\n", bug.name, seed, violation.c_str());
    shown.insert(bug.invariant);
  }
  EXPECT_EQ(shown, (std::set<std::string>{"state", "together", "live", "bound", "once", "ends",
                                          "counts", "named"}));
}

}  // namespace
}  // namespace muster::ps
