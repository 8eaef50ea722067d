#include "muster/launch/kubernetes/place/operator_lease.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launch::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr double kLeaseNow = 1'800'000'000;  // 2027-01-15T08:00:00Z

Json MakeLeaseOf(const std::string& holder, const std::string& renewed) {
  return {
      {"spec", {{"holderIdentity", holder}, {"renewTime", renewed}, {"leaseDurationSeconds", 15}}}};
}

std::string DescribeFound(const absl::StatusOr<Json>& found) {
  return DescribeLease("ops/muster-operator", found, kLeaseNow);
}

TEST(OperatorLeaseTest, OneThatIsRenewedHasAnOperator) {
  EXPECT_EQ(DescribeFound(MakeLeaseOf("a", "2027-01-15T07:59:55.000000Z")), "");
  EXPECT_EQ(DescribeFound(MakeLeaseOf("a", "2027-01-15T07:59:00.000000Z")), "");  // another clock's
  EXPECT_EQ(DescribeFound(MakeLeaseOf("a", "2027-01-15T08:09:00.000000Z")), "");
}

TEST(OperatorLeaseTest, OneThatIsOldGivenBackOrMissingHasNone) {
  const std::string old = DescribeFound(MakeLeaseOf("a", "2027-01-15T07:50:00.000000Z"));
  EXPECT_THAT(old, StartsWith("no operator runs: its lease ops/muster-operator was renewed last at "
                              "2027-01-15T07:50:00.000000Z; "));
  EXPECT_THAT(old, HasSubstr("(kubectl get pods --namespace ops)"));
  EXPECT_THAT(DescribeFound(MakeLeaseOf("", "2027-01-15T07:59:59.000000Z")),
              HasSubstr("was given back"));
  EXPECT_THAT(DescribeFound(absl::NotFoundError("none")), HasSubstr("does not exist"));
}

TEST(OperatorLeaseTest, WhatCannotBeSeenIsNotClaimed) {
  EXPECT_EQ(DescribeFound(absl::PermissionDeniedError("cannot get leases")), "");
  EXPECT_EQ(DescribeFound(absl::UnavailableError("away")), "");
  EXPECT_EQ(DescribeFound(MakeLeaseOf("a", "soon")), "");
}

}  // namespace
}  // namespace muster::launch::kubernetes
