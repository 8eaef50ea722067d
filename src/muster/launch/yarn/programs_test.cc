#include "muster/launch/yarn/programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "muster/base/strings.h"
#include "muster/io/memory_file_system.h"

namespace muster::launch::yarn {
namespace {

using ::testing::HasSubstr;

class ProgramsTest : public testing::Test {
 protected:
  ProgramsTest() { (void)files_->MakeFolders("/bin/tensorflow-hdfs"); }
  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(io::WriteFileAtomically(*files_, path, text).ok());
  }
  const std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
};

// The names of an archive's files, each with its bytes.
std::vector<std::pair<std::string, std::string>> Read(const std::string& tar) {
  constexpr size_t kBlock = 512;
  std::vector<std::pair<std::string, std::string>> found;
  EXPECT_EQ(tar.size() % kBlock, 0U);
  for (size_t at = 0; tar[at] != '\0';) {
    const std::string name = tar.substr(at).c_str();
    const size_t size = std::strtoull(tar.substr(at + 124, 12).c_str(), nullptr, 8);
    EXPECT_EQ(tar.substr(at + 257, 5), "ustar");
    found.emplace_back(name, tar.substr(at + kBlock, size));
    at += kBlock + (size + kBlock - 1) / kBlock * kBlock;
  }
  return found;
}

TEST_F(ProgramsTest, WhatIsInstalledBesideMusterIsPacked) {
  Write("/bin/muster-release", "program");
  Write("/bin/muster-yarn.jar", "jar");
  Write("/bin/muster-parquet", std::string(1000, 'p'));
  Write("/bin/tensorflow-hdfs/b.so", "library");
  Write("/bin/tensorflow-hdfs/a.py", "");
  const auto tar = PackPrograms(*files_, "/bin/muster-release", "/bin/muster-yarn.jar");
  ASSERT_TRUE(tar.ok()) << tar.status();
  EXPECT_THAT(Read(*tar),
              testing::ElementsAre(testing::Pair("muster", "program"),
                                   testing::Pair("muster-yarn.jar", "jar"),
                                   testing::Pair("muster-parquet", std::string(1000, 'p')),
                                   testing::Pair("tensorflow-hdfs/a.py", ""),
                                   testing::Pair("tensorflow-hdfs/b.so", "library")));
  EXPECT_EQ(*PackPrograms(*files_, "/bin/muster-release", "/bin/muster-yarn.jar"), *tar);
}

TEST_F(ProgramsTest, AJarOfAnotherVersionIsRefused) {
  Write("/bin/muster-yarn.jar", StrCat("PK META-INF/muster-master-", kMasterVersion, ". x"));
  EXPECT_EQ(FindJar(*files_, "/bin/muster").value(), "/bin/muster-yarn.jar");
  for (const std::string text :
       {"", "PK", "META-INF/muster-master-1.", "META-INF/muster-master-"}) {
    Write("/bin/muster-yarn.jar", text);
    const auto found = FindJar(*files_, "/bin/muster");
    EXPECT_TRUE(absl::IsFailedPrecondition(found.status())) << text;
    EXPECT_THAT(std::string(found.status().message()), HasSubstr("/bin/muster-yarn.jar"));
  }
}

TEST_F(ProgramsTest, AMissingJarIsAnErrorThatSaysWhereItWasLookedFor) {
  const auto found = FindJar(*files_, "/bin/muster");
  EXPECT_TRUE(absl::IsNotFound(found.status()));
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("/bin/../share/muster"));
}

}  // namespace
}  // namespace muster::launch::yarn
