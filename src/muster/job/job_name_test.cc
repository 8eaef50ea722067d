#include "muster/job/job_name.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::job {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

std::string Refusal(const std::string& name) { return std::string(CheckName(name).message()); }
std::string ClusterRefusal(const std::string& name) {
  return std::string(CheckClusterName(name).message());
}

TEST(JobNameTest, ARefusedNameComesWithOneThatWouldDo) {
  EXPECT_TRUE(CheckName("my_job-2").ok());
  EXPECT_THAT(Refusal("My_Job"), EndsWith(": 'my-job' would do"));
  EXPECT_THAT(Refusal("2nd.job_"), EndsWith(": 'nd-job' would do"));
  EXPECT_THAT(Refusal(std::string(50, 'a')), HasSubstr(std::string(46, 'a') + "' would"));
  EXPECT_THAT(Refusal("7"), EndsWith("or '_'"));
  EXPECT_THAT(Refusal(""), EndsWith("or '_'"));
}

TEST(JobNameTest, KubernetesHasNoUnderscores) {
  EXPECT_TRUE(CheckClusterName("my-job").ok());
  EXPECT_THAT(ClusterRefusal("my_job"), HasSubstr("'my-job' would do"));
  EXPECT_THAT(ClusterRefusal("My"), HasSubstr("'my' would do"));
  EXPECT_THAT(ClusterRefusal("My_Job"), HasSubstr("of a-z, 0-9 and '-' that"));
}

TEST(JobNameTest, ANamespaceIsRefusedInTheSameWay) {
  const auto refusal = [](const std::string& name) {
    return std::string(CheckNamespace(name).message());
  };
  EXPECT_TRUE(CheckNamespace("team-1").ok());
  EXPECT_TRUE(CheckNamespace("1team").ok());
  EXPECT_THAT(refusal("My_Team"), EndsWith(": 'my-team' would do"));
  EXPECT_THAT(refusal("-"), EndsWith("as namespaces of Kubernetes are"));
  EXPECT_THAT(refusal("team-"), EndsWith(": 'team' would do"));
  EXPECT_THAT(refusal(std::string(64, 'a')), HasSubstr("'" + std::string(63, 'a') + "' would"));
  EXPECT_FALSE(CheckNamespace("").ok());
}

}  // namespace
}  // namespace muster::job
