// What the simulations of all layers share. A simulation is a world whose history, with its faults,
// is a function of a seed: Run() returns the first invariant that does not hold, as "INVARIANT:
// what is wrong", or "". Its test runs many histories, and then histories with bugs planted into
// the code under test or around it, which show that each invariant can fail. For tests only.
//
// MUSTER_SEED=N in the environment runs the one history that a failed test has named.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "muster/base/simulated_time.h"
#include "muster/base/strings.h"
#include "muster/base/test_size.h"

namespace muster {

// The base of a simulated world: its clock and chance, and its first violation.
class SimulatedHistory {
 protected:
  explicit SimulatedHistory(uint64_t seed) : time_(seed) {}

  // `what` begins with the invariant. The first violation counts.
  void Violated(std::string what) {
    if (violation_.empty()) violation_ = StrCat(std::move(what), ", at ", time_.now(), " s");
  }

  SimulatedTime time_;
  std::string violation_;
};

// Runs SimulatedHistories() histories, each by its seed, and expects no violation.
inline void ExpectInvariantsHold(const std::function<std::string(uint64_t seed)>& run) {
  const char* const given = std::getenv("MUSTER_SEED");
  const uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  const uint64_t count = given != nullptr ? 1 : static_cast<uint64_t>(SimulatedHistories());
  for (uint64_t seed = first; seed < first + count; ++seed) {
    ASSERT_EQ(run(seed), "") << "seed " << seed;
  }
}

struct PlantedBug {
  const char* name;
  const char* invariant;  // the one that the bug violates
  std::function<std::string(uint64_t seed)> run;
};

// Expects that each bug violates its invariant in one of the first `histories` histories; prints
// its seed. `invariants`: those that must have been seen to fail.
inline void ExpectBugsAreCaught(const std::vector<PlantedBug>& bugs, uint64_t histories,
                                const std::set<std::string>& invariants) {
  std::set<std::string> shown;
  for (const PlantedBug& bug : bugs) {
    std::string violation;
    uint64_t seed = 0;
    while (!violation.starts_with(StrCat(bug.invariant, ":")) && seed < histories) {
      violation = bug.run(++seed);
    }
    EXPECT_TRUE(violation.starts_with(StrCat(bug.invariant, ":"))) << bug.name << " was not caught";
    std::printf("  %-45s seed %4llu  %s\n", bug.name, static_cast<unsigned long long>(seed),
                violation.c_str());
    shown.insert(bug.invariant);
  }
  EXPECT_EQ(shown, invariants);
}

}  // namespace muster
