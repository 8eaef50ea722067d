#include "muster/net/token.h"

#include <grp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/net/secret_file.h"

namespace muster::net {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TokenTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "token-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/token";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  std::string path_;
};

TEST_F(TokenTest, AFileOfOurOwnGoesThereAndBack) {
  const auto made = MakeTokenFile(path_);
  ASSERT_TRUE(made.ok()) << made.status();
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(info.st_size, 65);
  const auto read = ReadTokenFile(path_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(made->Matches(read->Reveal()));
  const auto other = MakeTokenFile(path_);
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(made->Matches(other->Reveal()));
}

TEST_F(TokenTest, MatchesOnlyTheWhole) {
  const auto token = Token::Make();
  ASSERT_TRUE(token.ok());
  const std::string& text = token->Reveal();
  EXPECT_TRUE(token->Matches(text));
  EXPECT_FALSE(token->Matches(""));
  EXPECT_FALSE(token->Matches(text.substr(1)));
  EXPECT_FALSE(token->Matches(text + "0"));
  for (const size_t i : {size_t{0}, size_t{31}, text.size() - 1}) {
    std::string wrong = text;
    wrong[i] = wrong[i] == '0' ? '1' : '0';
    EXPECT_FALSE(token->Matches(wrong)) << i;
  }
}

TEST_F(TokenTest, AFileThatOthersReadIsRefused) {
  ASSERT_TRUE(MakeTokenFile(path_).ok());
  for (const mode_t mode : {0640, 0604, 0620, 0644}) {
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    const auto read = ReadTokenFile(path_);
    EXPECT_TRUE(absl::IsPermissionDenied(read.status())) << read.status();
    EXPECT_THAT(read.status().ToString(), HasSubstr("chmod 600 " + path_));
  }
}

// A pod with fsGroup is another user in that group.
TEST_F(TokenTest, ASecretOfRootIsReadByTheGroupItWasMountedFor) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make such a file";
  constexpr uid_t kUser = 65534;
  constexpr gid_t kGroup = 4242;
  ASSERT_TRUE(MakeTokenFile(path_).ok());
  ASSERT_EQ(chown(path_.c_str(), 0, kGroup), 0);
  ASSERT_EQ(chmod(folder_.c_str(), 0711), 0);
  const auto read_by = [&](gid_t group, mode_t mode) {
    EXPECT_EQ(chmod(path_.c_str(), mode), 0);
    const pid_t child = fork();
    if (child == 0) {
      if (setgroups(1, &group) != 0 || setgid(kUser) != 0 || setuid(kUser) != 0) _exit(9);
      _exit(static_cast<int>(ReadTokenFile(path_).status().code()));
    }
    int status = -1;
    waitpid(child, &status, 0);
    return static_cast<absl::StatusCode>(WEXITSTATUS(status));
  };
  EXPECT_EQ(read_by(kGroup, 0440), absl::StatusCode::kOk);
  for (const mode_t mode : {0444, 0460, 0640, 0660}) {
    EXPECT_EQ(read_by(kGroup, mode), absl::StatusCode::kPermissionDenied) << mode;
  }
  // Root could read it, but is not in that group.
  ASSERT_EQ(chmod(path_.c_str(), 0440), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(ReadTokenFile(path_).status()));
}

TEST_F(TokenTest, BadFilesAreNamedAndNotQuoted) {
  EXPECT_TRUE(absl::IsNotFound(ReadTokenFile(path_).status()));
  ASSERT_TRUE(WriteSecretFile(path_, "hunter2 is no token\n").ok());
  const auto read = ReadTokenFile(path_);
  EXPECT_TRUE(absl::IsInvalidArgument(read.status()));
  EXPECT_THAT(read.status().ToString(), HasSubstr(path_));
  EXPECT_THAT(read.status().ToString(), Not(HasSubstr("hunter2")));
  EXPECT_THAT(read.status().ToString(), HasSubstr("make one by: openssl rand -hex 32"));
  ASSERT_TRUE(WriteSecretFile(path_, std::string(2000, 'a')).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(ReadTokenFile(path_).status()));
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(ReadTokenFile(path_).status().ToString(), HasSubstr("no regular file"));
}

TEST_F(TokenTest, ComesThroughAnInheritedDescriptor) {
  const auto token = Token::Make();
  ASSERT_TRUE(token.ok());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], token->Reveal().data(), 64), 64);
  close(ends[1]);
  const auto read = ReadTokenDescriptor(ends[0]);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(token->Matches(read->Reveal()));
  EXPECT_EQ(close(ends[0]), -1) << "it was closed";
}

TEST_F(TokenTest, AFailedWriteLeavesNothing) {
  EXPECT_FALSE(WriteSecretFile(folder_ + "/missing/token", "x").ok());
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);  // a folder cannot be replaced by a file
  EXPECT_FALSE(WriteSecretFile(path_, "x").ok());
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++entries;
  EXPECT_EQ(entries, 1u);
}

}  // namespace
}  // namespace muster::net
