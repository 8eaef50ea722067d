#include "muster/process/gpu_claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "muster/process/test_program.h"

namespace muster::process {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class GpuClaimTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::vector<GpuClaim>> Claim(int wanted, const std::string& holder) const {
    return ClaimGpus({"0", "1", "GPU-4a5b", "MIG-GPU-8/1/2"}, wanted, holder, folder_.path());
  }
  std::vector<std::string> Names(int wanted, const std::string& holder,
                                 std::vector<GpuClaim>* claims) const {
    auto claimed = Claim(wanted, holder);
    EXPECT_TRUE(claimed.ok()) << claimed.status();
    std::vector<std::string> names;
    if (!claimed.ok()) return names;
    for (GpuClaim& claim : *claimed) {
      names.push_back(claim.gpu);
      claims->push_back(std::move(claim));
    }
    return names;
  }

  const TestFolder folder_;
};

TEST_F(GpuClaimTest, NobodyGetsWhatAnotherHas) {
  std::vector<GpuClaim> first, second, third;
  EXPECT_THAT(Names(2, "/jobs/a", &first), ElementsAre("0", "1"));
  EXPECT_THAT(Names(1, "/jobs/b", &second), ElementsAre("GPU-4a5b"));
  const auto too_few = Claim(2, "/jobs/c");
  EXPECT_EQ(too_few.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(too_few.status().message(),
              AllOf(HasSubstr("want 2"), HasSubstr("0 is used by /jobs/a"),
                    HasSubstr("GPU-4a5b is used by /jobs/b"), HasSubstr("--share-gpus")));
  first.clear();
  EXPECT_THAT(Names(2, "/jobs/c", &third), ElementsAre("0", "1")) << "free again";
}

// Else two jobs that claim at the same time would each take the other's for used.
TEST_F(GpuClaimTest, WhatIsNotWantedIsNotTouched) {
  std::vector<GpuClaim> one;
  EXPECT_THAT(Names(1, "/jobs/a", &one), ElementsAre("0"));
  EXPECT_TRUE(std::filesystem::exists(folder_.File("gpu-0.lock")));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("gpu-1.lock")));
}

TEST_F(GpuClaimTest, NoWishTakesNothing) {
  std::vector<GpuClaim> none, all;
  EXPECT_THAT(Names(0, "/jobs/a", &none), ElementsAre());
  EXPECT_THAT(Names(4, "/jobs/b", &all), ElementsAre("0", "1", "GPU-4a5b", "MIG-GPU-8/1/2"));
}

// A coordinator that is started anew, whose tasks still hold what they inherited.
TEST_F(GpuClaimTest, TheSameHolderHasItsOwnAgain) {
  std::vector<GpuClaim> other, tasks, again;
  EXPECT_THAT(Names(1, "/jobs/b", &other), ElementsAre("0"));
  EXPECT_THAT(Names(2, "/jobs/a", &tasks), ElementsAre("1", "GPU-4a5b"));
  other.clear();
  EXPECT_THAT(Names(2, "/jobs/a", &again), ElementsAre("1", "GPU-4a5b")) << "not 0, which is free";
  tasks.clear();
  std::vector<GpuClaim> others;
  EXPECT_THAT(Names(2, "/jobs/c", &others), ElementsAre("0", "MIG-GPU-8/1/2"));
  EXPECT_FALSE(Claim(1, "/jobs/d").ok()) << "the second of those who share it holds it";
}

}  // namespace
}  // namespace muster::process
