#include "muster/control/incarnation.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/io/local_file_system.h"

namespace muster::control {
namespace {

using MarkState = IncarnationMark::State;

constexpr IncarnationId kId{{job::TaskType::kWorker, 1}, 7};

class IncarnationTest : public ::testing::Test {
 protected:
  IncarnationTest() {
    folder_ = StrCat(::testing::TempDir(), "/incarnation-", getpid());
    EXPECT_TRUE(files_->MakeFolders(folder_ + "/agents").ok());
  }
  ~IncarnationTest() override { EXPECT_TRUE(files_->RemoveAll(folder_).ok()); }

  std::unique_ptr<io::FileSystem> files_ = io::NewLocalFileSystem();
  std::string folder_;
};

TEST_F(IncarnationTest, IsHeldWhileItsAgentLives) {
  EXPECT_EQ(LookAtIncarnation(folder_, kId)->state, MarkState::kNone);
  {
    const auto claim = IncarnationClaim::Take(folder_, kId);
    ASSERT_TRUE(claim.ok() && claim->has_value()) << claim.status();
    EXPECT_EQ(LookAtIncarnation(folder_, kId)->state, MarkState::kHeld);
    EXPECT_EQ(LookAtIncarnation(folder_, kId)->pid, getpid());
    EXPECT_FALSE(IncarnationClaim::Take(folder_, kId)->has_value());
  }
  EXPECT_EQ(LookAtIncarnation(folder_, kId)->state, MarkState::kEnded);
  EXPECT_FALSE(IncarnationClaim::Take(folder_, kId)->has_value());
}

TEST_F(IncarnationTest, AKilledAgentHoldsNothing) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t agent = fork();
  if (agent == 0) {
    const auto claim = IncarnationClaim::Take(folder_, kId);
    if (write(ready[1], claim->has_value() ? "y" : "n", 1) == 1) pause();
    _exit(0);
  }
  char held = 0;
  ASSERT_EQ(read(ready[0], &held, 1), 1);
  EXPECT_EQ(held, 'y');
  EXPECT_EQ(LookAtIncarnation(folder_, kId)->pid, agent);
  kill(agent, SIGKILL);
  waitpid(agent, nullptr, 0);
  EXPECT_EQ(LookAtIncarnation(folder_, kId)->state, MarkState::kEnded);
  close(ready[0]);
  close(ready[1]);
}

TEST_F(IncarnationTest, WhatIsForbiddenIsNeverTaken) {
  ASSERT_TRUE(ForbidIncarnation(folder_, kId).ok());
  ASSERT_TRUE(ForbidIncarnation(folder_, kId).ok());
  EXPECT_FALSE(IncarnationClaim::Take(folder_, kId)->has_value());
  EXPECT_EQ(LookAtIncarnation(folder_, kId)->state, MarkState::kEnded);
}

TEST_F(IncarnationTest, TheListHasMarksAlone) {
  ASSERT_TRUE(ForbidIncarnation(folder_, kId).ok());
  ASSERT_TRUE(WriteEnd(folder_, kId, {.exit_code = 3}).ok());
  EXPECT_THAT(*ListIncarnations(folder_), ::testing::ElementsAre(kId));
  EXPECT_EQ(ReadEnd(folder_, kId)->exit_code, 3);
}

}  // namespace
}  // namespace muster::control
