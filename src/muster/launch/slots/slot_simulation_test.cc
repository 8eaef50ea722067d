#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "muster/base/simulation.h"
#include "muster/launch/slots/simulated_slots.h"

namespace muster::launch::slots {
namespace {

TEST(SlotSimulationTest, HistoriesOfLostLateAndRepeatedMessagesBreakNoPromise) {
  ExpectInvariantsHold([](uint64_t seed) { return SlotSimulation(seed, {}).Run(); });
}

// A table that forgets one of its rules is caught by the invariant that the rule is for.
PlantedBug Bug(const char* name, const char* invariant, const Tampering& tampering) {
  return {name, invariant,
          [tampering](uint64_t seed) { return SlotSimulation(seed, tampering).Run(); }};
}

void TakesAnOlderAttempt(ProviderReport* report, int64_t newest_attempt) {
  report->attempt = std::max(report->attempt, newest_attempt);
}

void WantsAllAgain(SlotMemory* memory) { memory->started_up_to = 0; }

void ForgetsWhoMayRun(SlotMemory* memory) { memory->may_run.clear(); }

// `sequence` is of one history: a seed's verdict does not depend on the seeds before it.
Tampering TakesOldReports() {
  return {.report = [sequence = int64_t{1000000}](ProviderReport* report, int64_t) mutable {
    report->sequence = ++sequence;
  }};
}

Admission LetsEveryAgentIn(Admission /*admission*/, bool /*runs*/) { return Admission::kYes; }

void TakesUnseenForGone(std::vector<job::TaskObservation>* observed,
                        const std::set<std::string>& seen) {
  for (job::TaskObservation& each : *observed) {
    if (seen.contains(StrCat(job::TaskName(each.id), ".", each.incarnation))) continue;
    each.phase = job::TaskObservation::Phase::kGone;
  }
}

void NeverKills(ProviderAnswer* answer, const ProviderReport& /*report*/) { answer->kill.clear(); }

void NeverWants(ProviderAnswer* answer, const ProviderReport& /*report*/) {
  answer->wanted.clear();
}

TEST(SlotSimulationTest, PlantedBugsAreCaught) {
  ExpectBugsAreCaught(
      {
          Bug("takes an older attempt for the newest", "nothing left",
              {.report = TakesAnOlderAttempt}),
          Bug("wants again what an earlier one wanted", "once", {.memory = WantsAllAgain}),
          Bug("forgets who may run", "truth", {.memory = ForgetsWhoMayRun}),
          Bug("takes an old report for a new one", "progress", TakesOldReports()),
          Bug("lets every agent in", "truth", {.admission = LetsEveryAgentIn}),
          Bug("takes an unseen slot for gone", "truth", {.observed = TakesUnseenForGone}),
          Bug("never kills", "nothing left", {.answer = NeverKills}),
          Bug("never says what is wanted", "progress", {.answer = NeverWants}),
      },
      5000, {"nothing left", "once", "progress", "truth"});
}

}  // namespace
}  // namespace muster::launch::slots
