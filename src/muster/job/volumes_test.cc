#include "muster/job/volumes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/job/pod_template.h"

namespace muster::job {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(ReplacePathsTest, APathOfItsOwnOrTheBeginOfOne) {
  const std::vector<std::pair<std::string, std::string>> paths = {
      {"/data", "/home/u/d"}, {"/data/deep", "/x"}, {"/", "/never"}};
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"/data", "/home/u/d"},
      {"/data/train", "/home/u/d/train"},
      {"--dir=/data/", "--dir=/home/u/d/"},
      {"cp '/data/a' \"/data\" b", "cp '/home/u/d/a' \"/home/u/d\" b"},
      {"/lib:/data/lib,/data", "/lib:/home/u/d/lib,/home/u/d"},
      {"file:///data/a", "file:///home/u/d/a"},
      {"/data/deep/a /data/deeper", "/x/a /home/u/d/deeper"},
      {"/database /data2 /data-1", "/database /data2 /data-1"},
      {"hdfs://host/data hdfs:///data ./data ../data $HOME/data", ""},
      {"s3://bucket/data/a", ""},
      {"", ""},
  };
  for (const auto& [text, expected] : cases) {
    const bool same = expected.empty();
    EXPECT_EQ(ReplacePaths(text, {paths.begin(), paths.begin() + 2}), same ? text : expected);
  }
  EXPECT_EQ(ReplacePaths("/data", {{"/data", "/data/data"}}), "/data/data") << "once";
}

TEST(ParseVolumesTest, NameAndPath) {
  EXPECT_THAT(*ParseVolumes({"a=/b/", "c=d=e"}), ElementsAre(Pair("a", "/b"), Pair("c", "d=e")));
  for (const std::vector<std::string>& bad :
       std::vector<std::vector<std::string>>{{"a"}, {"=b"}, {"a="}, {""}, {"a=b", "a=c"}}) {
    EXPECT_EQ(ParseVolumes(bad).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

class MapVolumesTest : public ::testing::Test {
 protected:
  MapVolumesTest() {
    spec_.name = "j";
    Json& pod = spec_.replicas[TaskType::kWorker].pod_template["spec"];
    pod = Json::parse(R"json({
      "containers": [{
        "name": "tensorflow", "command": ["python", "/code/train.py"],
        "args": ["--data=/data/train", "$(OUT)"], "workingDir": "/code",
        "env": [{"name": "OUT", "value": "/out/run"}, {"name": "EMPTY"}],
        "volumeMounts": [
          {"name": "data", "mountPath": "/data/"},
          {"name": "host", "mountPath": "/out"},
          {"name": "data", "mountPath": "/code", "subPath": "src"}]}],
      "volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "claim"}},
        {"name": "host", "hostPath": {"path": "/mnt/out"}}]})json");
  }
  Json& pod() { return spec_.replicas[TaskType::kWorker].pod_template["spec"]; }
  absl::Status Map(const std::map<std::string, std::string>& places) {
    const auto exists = [this](const std::string& path) { return there_.contains(path); };
    return MapVolumes(places, exists, &spec_, &notes_);
  }

  JobSpec spec_;
  std::set<std::string> there_ = {"/d", "/d/src", "/mnt/out"};
  std::vector<std::string> notes_;
};

TEST_F(MapVolumesTest, PathsAreThoseOfThisMachine) {
  ASSERT_TRUE(Map({{"data", "/d"}}).ok()) << Map({{"data", "/d"}});
  const auto process = ParseProcess(spec_.replicas[TaskType::kWorker].pod_template);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_THAT(process->command,
              ElementsAre("python", "/d/src/train.py", "--data=/d/train", "/mnt/out/run"));
  EXPECT_EQ(process->working_directory, "/d/src");
  EXPECT_THAT(process->env, ElementsAre(Pair("OUT", "/mnt/out/run"), Pair("EMPTY", "")));
  for (const VolumeMount& mount : process->volumes) {
    EXPECT_TRUE(there_.contains(mount.mount_path)) << mount.mount_path;
    EXPECT_THAT(mount.claim, IsEmpty());
  }
  EXPECT_THAT(notes_, ElementsAre("volume 'data': /code is /d/src", "volume 'data': /data is /d",
                                  "volume 'host': /out is /mnt/out"));
}

TEST_F(MapVolumesTest, AClaimsNameWillDo) {
  EXPECT_TRUE(Map({{"claim", "/d"}}).ok());
  EXPECT_EQ(pod()["containers"][0]["workingDir"], "/d/src");
}

TEST_F(MapVolumesTest, AMountPathThatIsThereStays) {
  there_.insert({"/data", "/code"});
  const Json before = pod()["containers"][0]["args"];
  EXPECT_TRUE(Map({}).ok());
  EXPECT_EQ(pod()["containers"][0]["args"], before);
}

TEST_F(MapVolumesTest, WhatIsNowhereIsNamedWithWhatToSay) {
  const absl::Status status = Map({});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("Worker"), HasSubstr("'data'"), HasSubstr("/data"),
                                      HasSubstr("--volume data=PATH")));
}

TEST_F(MapVolumesTest, AllThatIsNowhereIsNamedAtOnce) {
  there_.clear();
  EXPECT_THAT(Map({}).message(), AllOf(HasSubstr("'data'"), HasSubstr("'host'")));
}

TEST(MapPathsTest, AFolderOfTheImageIsOneOfThisMachine) {
  JobSpec spec;
  Json& pod_template = spec.replicas[TaskType::kWorker].pod_template;
  pod_template = TemplateFor({"python", "/app/main.py", "--data=/application"});
  SetEnv("OUT", "/app/out", &pod_template);
  const auto paths = ParsePaths({"/app/=/home/me/src/"});
  ASSERT_TRUE(paths.ok()) << paths.status();
  MapPaths(*paths, &spec);
  const auto process = ParseProcess(pod_template);
  EXPECT_THAT(process->command,
              ElementsAre("python", "/home/me/src/main.py", "--data=/application"));
  EXPECT_THAT(process->env, ElementsAre(Pair("OUT", "/home/me/src/out")));
  for (const char* const bad : {"app=/x", "/=/x", "/app", "/app="}) {
    EXPECT_EQ(ParsePaths({bad}).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST_F(MapVolumesTest, APlaceMustBeThereAndItsNameBeKnown) {
  there_.erase("/d/src");
  EXPECT_THAT(Map({{"data", "/d"}}).message(), HasSubstr("there is no /d/src"));
}

TEST_F(MapVolumesTest, AnUnknownNameIsAnErrorWithTheNearest) {
  const absl::Status status = Map({{"data", "/d"}, {"hosts", "/d"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("did you mean 'host'"));
}

TEST_F(MapVolumesTest, OtherKindsAreNamedOrMapped) {
  pod()["volumes"][1] = {{"name", "host"}, {"emptyDir", Json::object()}};
  JobSpec again = spec_;
  EXPECT_TRUE(Map({{"data", "/d"}}).ok());
  EXPECT_THAT(notes_, ::testing::Contains(AllOf(HasSubstr("'host' (emptyDir)"),
                                                HasSubstr("not made on this machine"))));
  spec_ = again;
  EXPECT_TRUE(Map({{"data", "/d"}, {"host", "/mnt/out"}}).ok());
  EXPECT_EQ(pod()["containers"][0]["env"][0]["value"], "/mnt/out/run");
}

TEST_F(MapVolumesTest, NoMountNeedsNoVolume) {
  pod()["containers"][0]["volumeMounts"] = Json::array();
  pod().erase("volumes");
  const Json before = pod()["containers"];
  EXPECT_TRUE(Map({}).ok());
  EXPECT_EQ(pod()["containers"], before);
}

TEST_F(MapVolumesTest, HostileTemplatesAreErrors) {
  const Json good = pod();
  for (const char* const path : {"/", "", "data", "//"}) {
    pod()["containers"][0]["volumeMounts"][0]["mountPath"] = path;
    EXPECT_EQ(Map({{"data", "/d"}}).code(), absl::StatusCode::kInvalidArgument) << path;
    pod() = good;
  }
  pod().erase("volumes");
  EXPECT_FALSE(Map({}).ok());
  for (const char* const json :
       {R"({"containers": 1})", R"({"containers": [1]})", "[]", "1",
        R"({"containers": [{"volumeMounts": 1}], "volumes": 2})",
        R"({"containers": [{"command": ["x"], "volumeMounts": [1]}]})",
        R"({"containers": [{"command": ["x"], "volumeMounts": [1]}], "volumes": [2]})"}) {
    pod() = Json::parse(json);
    (void)Map({});  // an error or not, but no crash
  }
}

}  // namespace
}  // namespace muster::job
