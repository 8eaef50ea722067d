#include "muster/launch/kubernetes/place/training_template.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launch::kubernetes {
namespace {

using ::testing::ElementsAre;

TEST(TrainingTemplateTest, AClaimHasAPath) {
  EXPECT_EQ(ParseClaimMount("data:/data/in").value(), (ClaimMount{"data", "/data/in"}));
  for (const char* const text : {"data", "data:", ":/data", "data:in", ""}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseClaimMount(text).status())) << text;
  }
}

TEST(TrainingTemplateTest, AnEmptyTemplateBecomesThePodOfATraining) {
  const auto made = MakeTrainingTemplate({.image = "i",
                                          .volumes = {{"a", "/a"}, {"b", "/b"}},
                                          .command = {"muster", "worker", "$(HOME)"},
                                          .model = "x: $1",
                                          .model_variable = "M"});
  ASSERT_TRUE(made.ok()) << made.status();
  const Json expected = Json::parse(R"json({"spec": {
    "volumes": [{"name": "muster-volume-0", "persistentVolumeClaim": {"claimName": "a"}},
                {"name": "muster-volume-1", "persistentVolumeClaim": {"claimName": "b"}}],
    "securityContext": {"fsGroup": 65532, "fsGroupChangePolicy": "OnRootMismatch"},
    "containers": [{"name": "tensorflow", "image": "i",
      "command": ["muster", "worker", "$$(HOME)"],
      "volumeMounts": [{"name": "muster-volume-0", "mountPath": "/a"},
                       {"name": "muster-volume-1", "mountPath": "/b"}],
      "env": [{"name": "M", "value": "x: $$1"}]}]}})json");
  EXPECT_EQ(*made, expected);
  EXPECT_THAT(GetMountPaths(*made), ElementsAre("/a", "/b"));
}

TEST(TrainingTemplateTest, TheOnlyContainerTrainsAndSidecarsStay) {
  const Json only = Json::parse(R"({"spec": {"containers": [{"image": "own", "args": ["x"]}]}})");
  auto made = MakeTrainingTemplate({.pod_template = only, .command = {"c"}});
  ASSERT_TRUE(made.ok()) << made.status();
  const Json& container = (*made)["spec"]["containers"][0];
  EXPECT_EQ(container["name"], "tensorflow");
  EXPECT_EQ(container["image"], "own");
  EXPECT_FALSE(container.contains("args"));
  const Json two = Json::parse(R"({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}})");
  made = MakeTrainingTemplate({.pod_template = two, .image = "i"});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)["spec"]["containers"].size(), 3U);
  EXPECT_EQ((*made)["spec"]["containers"][0]["name"], "tensorflow");
}

TEST(TrainingTemplateTest, TheSecurityOfTheTemplateStays) {
  const Json given = Json::parse(R"({"spec": {"securityContext": {"runAsUser": 7}}})");
  const auto made = MakeTrainingTemplate({.pod_template = given, .image = "i"});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)["spec"]["securityContext"], (Json{{"runAsUser", 7}}));
}

TEST(TrainingTemplateTest, WithoutAnImageThereIsNoPod) {
  EXPECT_TRUE(absl::IsInvalidArgument(MakeTrainingTemplate({.command = {"c"}}).status()));
}

TEST(TrainingTemplateTest, APathIsBelowAFolderOfItsOwnName) {
  EXPECT_TRUE(IsBelow("/data", {"/x", "/data"}));
  EXPECT_TRUE(IsBelow("/data/m", {"/data/"}));
  EXPECT_TRUE(IsBelow("/data/m", {"/"}));
  EXPECT_FALSE(IsBelow("/database", {"/data"}));
  EXPECT_FALSE(IsBelow("/data", {}));
}

}  // namespace
}  // namespace muster::launch::kubernetes
