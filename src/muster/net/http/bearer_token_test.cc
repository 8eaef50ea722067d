#include "muster/net/http/bearer_token.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::net {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class BearerTokenTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "bearer-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/token";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Put(const std::string& contents, mode_t mode) const {
    std::ofstream(path_, std::ios::trunc) << contents;
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
  }

  std::string folder_;
  std::string path_;
};

TEST_F(BearerTokenTest, TextIsTakenWithoutTheSpaceAroundIt) {
  const auto token = BearerToken::FromText(" eyJhbGc.a-b_c~d+e/f== \n", "a test");
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->Read().value(), "eyJhbGc.a-b_c~d+e/f==");
}

TEST_F(BearerTokenTest, TextThatCouldBreakOutOfItsFieldIsRefusedAndNotQuoted) {
  for (const std::string& text :
       {std::string("hunter2\r\nX: y"), std::string("hunter2 b"), std::string("hunter2\0", 8),
        std::string("hunter2,"), std::string(), std::string(" \n"),
        "hunter2" + std::string(16384, 'a')}) {
    const absl::Status status = BearerToken::FromText(text, "a test").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.ToString(), AllOf(HasSubstr("a test"), Not(HasSubstr("hunter2"))));
  }
}

TEST_F(BearerTokenTest, AFileIsReadAnewAtEachCall) {
  const BearerToken token = BearerToken::FromFile(path_);
  EXPECT_TRUE(absl::IsNotFound(token.Read().status()));
  Put("first\n", 0600);
  EXPECT_EQ(token.Read().value(), "first");
  Put("again\n", 0600);  // the same size, within the same tick of the file's time
  EXPECT_EQ(token.Read().value(), "again");
}

// As the kubelet replaces what it mounts: ..data is a link to a folder, and is renamed over.
TEST_F(BearerTokenTest, ALinkThatIsChangedLeadsToTheNewToken) {
  for (const char* name : {"one", "two"}) {
    ASSERT_EQ(mkdir((folder_ + "/.." + name).c_str(), 0755), 0);
    std::ofstream(folder_ + "/.." + name + "/token") << name;
  }
  const auto point_to = [&](const std::string& name) {
    ASSERT_EQ(symlink(name.c_str(), (folder_ + "/..data_tmp").c_str()), 0);
    ASSERT_EQ(rename((folder_ + "/..data_tmp").c_str(), (folder_ + "/..data").c_str()), 0);
  };
  point_to("..one");
  ASSERT_EQ(symlink("..data/token", path_.c_str()), 0);
  const BearerToken token = BearerToken::FromMountedFile(path_);
  EXPECT_EQ(token.Read().value(), "one");
  point_to("..two");
  EXPECT_EQ(token.Read().value(), "two");
}

TEST_F(BearerTokenTest, AFileThatOthersReadMustBeAMountedOne) {
  for (const mode_t mode : {0644, 0640, 0604}) {
    Put("secret", mode);
    const absl::Status refused = BearerToken::FromFile(path_).Read().status();
    EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
    EXPECT_THAT(refused.ToString(), AllOf(HasSubstr(path_), Not(HasSubstr(": secret"))));
    EXPECT_EQ(BearerToken::FromMountedFile(path_).Read().value(), "secret");
  }
}

TEST_F(BearerTokenTest, AFileThatOthersWriteIsRefusedEvenIfMounted) {
  for (const mode_t mode : {0666, 0620, 0602}) {
    Put("secret", mode);
    const absl::Status refused = BearerToken::FromMountedFile(path_).Read().status();
    EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
    EXPECT_THAT(refused.ToString(), HasSubstr("chmod go-w " + path_));
  }
  if (geteuid() != 0) return;  // only root can give a file away
  Put("secret", 0600);
  ASSERT_EQ(chown(path_.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(BearerToken::FromMountedFile(path_).Read().status()));
}

TEST_F(BearerTokenTest, AFileWithoutATokenIsNamedAndNotQuoted) {
  for (const std::string& contents :
       {std::string("hunter2 is none"), std::string(), "hunter2" + std::string(20000, 'a')}) {
    Put(contents, 0600);
    const absl::Status status = BearerToken::FromFile(path_).Read().status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.ToString(), AllOf(HasSubstr(path_), Not(HasSubstr("hunter2"))));
  }
}

}  // namespace
}  // namespace muster::net
