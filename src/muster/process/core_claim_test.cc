#include "muster/process/core_claim.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <set>
#include <vector>

#include "muster/process/child.h"
#include "muster/process/cpu_sets.h"

namespace muster::process {
namespace {

std::vector<int> Cpus() { return AvailableCpus().value(); }

TEST(CoreClaimTest, EachCoreIsClaimedOnce) {
  const size_t cores = Cpus().size();
  if (cores < 2) GTEST_SKIP() << "needs two cores";
  std::vector<CoreClaim> claims;
  std::set<int> taken;
  while (auto claim = CoreClaim::Take()) {
    taken.insert(claim->core());
    claims.push_back(*std::move(claim));
    ASSERT_LE(claims.size(), cores);
  }
  // Others of this machine may have some.
  EXPECT_EQ(taken.size(), claims.size());
  if (claims.empty()) GTEST_SKIP() << "all cores are claimed by others";
  const int last = claims.back().core();
  claims.pop_back();
  const auto again = CoreClaim::Take();
  ASSERT_TRUE(again.has_value()) << "a claim ends with its object";
  EXPECT_EQ(again->core(), last);
}

TEST(CoreClaimTest, AThreadStaysAndIsFreeAgain) {
  const auto claim = CoreClaim::Take();
  if (!claim) GTEST_SKIP() << "no core is free";
  const std::vector<int> before = Cpus();
  {
    const CoreClaim::Stay stay(*claim);
    EXPECT_EQ(Cpus(), std::vector<int>{claim->core()});
  }
  EXPECT_EQ(Cpus(), before);
}

TEST(CoreClaimTest, AnotherProcessIsBoundAndNamesNoneThatHasEnded) {
  const auto claim = CoreClaim::Take();
  if (!claim) GTEST_SKIP() << "no core is free";
  auto child = Child::Start({.argv = {"sleep", "60"}, .environment = CurrentEnvironment()});
  ASSERT_TRUE(child.ok()) << child.status();
  const pid_t pid = (*child)->pid();
  EXPECT_TRUE(claim->Bind(pid));
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(pid, sizeof set, &set), 0);
  EXPECT_EQ(CPU_COUNT(&set), 1);
  EXPECT_TRUE(CPU_ISSET(static_cast<size_t>(claim->core()), &set));
  ASSERT_TRUE((*child)->SignalGroup(SIGKILL).ok());
  ASSERT_TRUE((*child)->Wait(60).ok());
  EXPECT_FALSE(claim->Bind(pid));
}

}  // namespace
}  // namespace muster::process
