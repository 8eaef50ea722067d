// Runs parameter servers and the replicas that train by them through the seeded histories of
// simulated_training.h; planted bugs show that each invariant can fail.
#include "muster/base/simulation.h"

#include <vector>

#include "gtest/gtest.h"
#include "muster/ps/simulated_training.h"

namespace muster::ps {
namespace {

TEST(Simulation, TheInvariantsHold) {
  ExpectInvariantsHold([](uint64_t seed) { return SimulatedTraining(seed).Run(); });
}

PlantedBug Bug(const char* name, const char* invariant, const Tamper& tamper) {
  return {name, invariant,
          [tamper](uint64_t seed) { return SimulatedTraining(seed, tamper).Run(); }};
}

TEST(Simulation, EachPlantedBugIsCaught) {
  if (kUnderSanitizer)
    GTEST_SKIP() << "only the release build runs the thousands of histories that this takes";
  const std::vector<PlantedBug> bugs = {
      Bug("numbers pushes itself", "state", {.numbers_pushes_itself = true}),
      Bug("accepts any generation", "live", {.accepts_any_generation = true}),
      Bug("ignores incarnations", "live", {.ignores_incarnations = true}),
      Bug("others count at once", "together", {.others_count_at_once = true}),
      Bug("does not report breaks", "named", {.drops_breaks = true}),
      Bug("pushes to the lead first", "ends", {.leads_first = true}),
      Bug("saves without waiting", "together", {.saves_without_waiting = true}),
      Bug("loses a position", "state", {.drops_a_position = true}),
      Bug("allows one batch too many", "bound", {.allows_one_more = true}),
      Bug("waits for nobody", "once", {.waits_for_nobody = true}),
      Bug("loses counts", "counts", {.drops_counts = true}),
      Bug("misses a batch", "state", {.misses_a_batch = true}),
      Bug("accepts stale gradients", "state", {.accepts_stale = true}),
      Bug("scales nothing", "state", {.scales_nothing = true}),
      Bug("settles alone", "state", {.settles_alone = true}),
      Bug("gives up soon", "named", {.gives_up_soon = true}),
      Bug("never gives up", "ends", {.never_gives_up = true}),
  };
  ExpectBugsAreCaught(bugs, 20000,
                      {"state", "together", "live", "bound", "once", "ends", "counts", "named"});
}

}  // namespace
}  // namespace muster::ps
