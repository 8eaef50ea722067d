#include "muster/engine/tensorflow/find_tensorflow.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/engine/tensorflow/test_model.h"

namespace muster::engine::tensorflow {
namespace {

using ::testing::HasSubstr;

class FindTensorFlowTest : public testing::Test {
 protected:
  // Makes a library, which no test loads, and returns its folder.
  std::string MakeLibrary(const std::string& folder) const {
    std::filesystem::create_directories(folder_.File(folder));
    folder_.Write(folder + "/libtensorflow_cc.so.2", "");
    return folder_.File(folder);
  }
  // Makes a program python3 that prints `says`.
  void MakePython(const std::string& says) const {
    std::filesystem::create_directories(folder_.File("bin"));
    folder_.Write("bin/python3", "#!/bin/sh\n" + says + "\n");
    std::filesystem::permissions(folder_.File("bin/python3"), std::filesystem::perms::owner_all);
  }
  std::vector<std::string> Environment() const { return {"PATH=" + folder_.File("bin")}; }

  const ModelFolder folder_;
};

TEST_F(FindTensorFlowTest, InFoldersAsTheyAreInstalled) {
  const std::string package = MakeLibrary("venv/lib/python3.11/site-packages/tensorflow");
  for (const char* const named : {"venv", "venv/lib/python3.11/site-packages",
                                  "venv/lib/python3.11/site-packages/tensorflow"}) {
    EXPECT_EQ(FindTensorFlow(folder_.File(named), {}).value(), package);
    EXPECT_EQ(FindTensorFlow("", {"MUSTER_TENSORFLOW=" + folder_.File(named)}).value(), package);
  }
}

TEST_F(FindTensorFlowTest, TheFlagWinsOverTheVariableAndTheVariableOverPython) {
  const std::string flag = MakeLibrary("flag"), variable = MakeLibrary("variable"),
                    asked = MakeLibrary("asked");
  MakePython("echo a warning; echo folder:" + asked);
  std::vector<std::string> environment = Environment();
  EXPECT_EQ(FindTensorFlow("", environment).value(), asked);
  environment.push_back("MUSTER_TENSORFLOW=" + variable);
  EXPECT_EQ(FindTensorFlow("", environment).value(), variable);
  EXPECT_EQ(FindTensorFlow(flag, environment).value(), flag);
  EXPECT_EQ(FindTensorFlow(folder_.File("bin/python3"), environment).value(), asked);
}

TEST_F(FindTensorFlowTest, ErrorsNameThePlacesThatWereSearched) {
  const auto error = [&](const std::string& named) {
    const auto found = FindTensorFlow(named, Environment());
    EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
    return std::string(found.status().message());
  };
  EXPECT_THAT(error(""), HasSubstr("python3: no such program in PATH"));
  EXPECT_THAT(error(folder_.path()), HasSubstr("--tensorflow " + folder_.path()));
  EXPECT_THAT(error(folder_.File("nothing")), HasSubstr("no such file or folder"));
  MakePython("echo folder:");
  EXPECT_THAT(
      error(""),
      HasSubstr(
          "python3 has no package tensorflow: install it (pip install tensorflow-cpu) or name"));
  MakePython("echo folder:/an/old/one");
  EXPECT_THAT(error(""), HasSubstr("/an/old/one, has no libtensorflow_cc.so.2"));
  MakePython("exit 3");
  EXPECT_THAT(error(""), HasSubstr("exit code 3"));
}

}  // namespace
}  // namespace muster::engine::tensorflow
