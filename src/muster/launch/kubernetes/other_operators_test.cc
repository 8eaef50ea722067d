#include "muster/launch/kubernetes/other_operators.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launch::kubernetes {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class OtherOperatorsTest : public ::testing::Test {
 protected:
  void SetLease(const std::string& holder, const std::string& renewed) {
    lease_ =
        Json{{"spec",
              {{"holderIdentity", holder}, {"renewTime", renewed}, {"leaseDurationSeconds", 15}}}};
  }
  // What is known `seconds` after the look before.
  absl::StatusOr<bool> LookAfter(double seconds) {
    clock_.Advance(seconds);
    return others_.Run("ops/muster-operator", "team/j");
  }

  FakeClock clock_;
  absl::StatusOr<Json> lease_ = absl::NotFoundError("no lease");
  std::vector<std::string> calls_, said_;
  OtherOperators others_{[this](const std::string& target) {
                           calls_.push_back(target);
                           return lease_;
                         },
                         clock_, [this](const std::string& line) { said_.push_back(line); }};
};

TEST_F(OtherOperatorsTest, ALeaseThatIsRenewedIsHeldAndAskedForSeldom) {
  SetLease("host_1", "a");
  EXPECT_EQ(LookAfter(0).value(), true);
  EXPECT_EQ(LookAfter(1).value(), true);
  EXPECT_EQ(LookAfter(1).value(), true);
  EXPECT_THAT(calls_, ElementsAre("/apis/coordination.k8s.io/v1/namespaces/ops/leases/"
                                  "muster-operator"));
  SetLease("host_1", "b");
  EXPECT_EQ(LookAfter(20).value(), true);
  EXPECT_EQ(LookAfter(10).value(), true);
  EXPECT_THAT(said_, ElementsAre(AllOf(HasSubstr("leaves the job team/j and others alone: host_1"),
                                       HasSubstr("ops/muster-operator"))));
}

TEST_F(OtherOperatorsTest, AJobIsTakenOverWhenTheLeaseIsNotRenewedForItsLength) {
  SetLease("host_1", "a");
  EXPECT_EQ(LookAfter(0).value(), true);
  EXPECT_EQ(LookAfter(14).value(), true);
  EXPECT_EQ(LookAfter(6).value(), false);
  EXPECT_THAT(said_, SizeIs(2));
  EXPECT_THAT(said_.back(), HasSubstr("takes over the jobs of the lease ops/muster-operator"));
  SetLease("host_2", "b");  // its operators are back
  EXPECT_EQ(LookAfter(6).value(), true);
}

TEST_F(OtherOperatorsTest, ALeaseThatIsGivenBackOrGoneIsNotHeld) {
  EXPECT_EQ(LookAfter(0).value(), false);
  SetLease("", "a");
  EXPECT_EQ(LookAfter(6).value(), false);
  EXPECT_EQ(others_.Run("no-lease", "team/j").value(), false);
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(OtherOperatorsTest, ALeaseThatCannotBeSeenLeavesTheJobAlone) {
  lease_ = absl::PermissionDeniedError("cannot get leases");
  const absl::Status status = LookAfter(0).status();
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("whether the operators of the lease ops/muster-operator run it"));
}

}  // namespace
}  // namespace muster::launch::kubernetes
