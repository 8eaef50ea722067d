#include "muster/control/tensorflow_hdfs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::control {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;
using Environment = std::vector<std::string>;

Environment Added(Environment environment) {
  AddTensorFlowHdfs("/opt/hdfs", &environment);
  return environment;
}

TEST(AddTensorFlowHdfsTest, StandsInFrontOfTheUsersOwnPath) {
  EXPECT_THAT(
      Added({"PYTHONPATH=/a:/b"}),
      UnorderedElementsAre("PYTHONPATH=/opt/hdfs:/a:/b",
                           "MUSTER_TENSORFLOW_HDFS=/opt/hdfs/libmuster-tensorflow-hdfs.so"));
  EXPECT_THAT(Added({}), testing::Contains("PYTHONPATH=/opt/hdfs"));
}

TEST(AddTensorFlowHdfsTest, IsAddedOnce) {
  const Environment once = Added({"PYTHONPATH=/a"});
  EXPECT_EQ(Added(once), once);
}

TEST(AddTensorFlowHdfsTest, CanBeSwitchedOff) {
  EXPECT_THAT(Added({"MUSTER_TENSORFLOW_HDFS=off"}), ElementsAre("MUSTER_TENSORFLOW_HDFS=off"));
}

TEST(AddTensorFlowHdfsTest, AddsNothingWhereItIsNotInstalled) {
  Environment environment = {"PYTHONPATH=/a"};
  AddTensorFlowHdfs("", &environment);
  EXPECT_THAT(environment, ElementsAre("PYTHONPATH=/a"));
}

}  // namespace
}  // namespace muster::control
