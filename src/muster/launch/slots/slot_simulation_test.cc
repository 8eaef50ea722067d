#include "gtest/gtest.h"
#include "muster/base/test_size.h"
#include "muster/launch/slots/simulated_slots.h"

namespace muster::launch::slots {
namespace {

constexpr uint64_t kFirstSeed = 1;

TEST(SlotSimulationTest, HistoriesOfLostLateAndRepeatedMessagesBreakNoPromise) {
  const auto histories = static_cast<uint64_t>(SimulatedHistories());
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + histories; ++seed) {
    ASSERT_EQ(SlotSimulation(seed, {}).Run(), "") << "seed " << seed;
  }
}

// A table that forgets one of its rules is caught by the invariant that the rule is for.
struct PlantedBug {
  const char* name;
  Tampering tampering;
};

std::vector<PlantedBug> PlantedBugs() {
  std::vector<PlantedBug> bugs;
  bugs.push_back({"takes an older attempt for the newest", {}});
  bugs.back().tampering.report = [](ProviderReport* report, int64_t newest_attempt) {
    report->attempt = std::max(report->attempt, newest_attempt);
  };
  bugs.push_back({"wants again what an earlier coordinator wanted", {}});
  bugs.back().tampering.wanted_up_to = [](int64_t* incarnation) { *incarnation = 0; };
  bugs.push_back({"takes an old report for a new one", {}});
  bugs.back().tampering.report = [](ProviderReport* report, int64_t) {
    static int64_t sequence = 1000000;
    report->sequence = ++sequence;
  };
  bugs.push_back({"lets every agent in", {}});
  bugs.back().tampering.admission = [](Admission, bool) { return Admission::kYes; };
  bugs.push_back({"takes a slot that it does not see for gone", {}});
  bugs.back().tampering.observed = [](std::vector<job::TaskObservation>* observed,
                                      const std::set<std::string>& seen) {
    for (job::TaskObservation& each : *observed) {
      if (seen.contains(StrCat(job::TaskName(each.id), ".", each.incarnation))) continue;
      each.phase = job::TaskObservation::Phase::kGone;
    }
  };
  bugs.push_back({"never kills", {}});
  bugs.back().tampering.answer = [](ProviderAnswer* answer, const ProviderReport&) {
    answer->kill.clear();
  };
  bugs.push_back({"never says what is wanted", {}});
  bugs.back().tampering.answer = [](ProviderAnswer* answer, const ProviderReport&) {
    answer->wanted.clear();
  };
  return bugs;
}

TEST(SlotSimulationTest, PlantedBugsAreCaught) {
  for (const PlantedBug& bug : PlantedBugs()) {
    std::string violation;
    for (uint64_t seed = kFirstSeed; seed < kFirstSeed + 5000 && violation.empty(); ++seed) {
      violation = SlotSimulation(seed, bug.tampering).Run();
    }
    EXPECT_NE(violation, "") << bug.name;
  }
}

}  // namespace
}  // namespace muster::launch::slots
