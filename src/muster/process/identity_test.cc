#include "muster/process/identity.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "gtest/gtest.h"

namespace muster::process {
namespace {

TEST(IdentityTest, ThisProcessIsAliveAndNamesItsMachine) {
  const ProcessIdentity self = ThisProcess();
  EXPECT_EQ(self.pid, getpid());
  EXPECT_FALSE(self.machine.empty());
  EXPECT_FALSE(self.host.empty());
  EXPECT_EQ(GetLiveness(self), Liveness::kAlive);
}

TEST(IdentityTest, AnotherProcessOfTheSamePidIsNotIt) {
  ProcessIdentity before = ThisProcess();
  --before.start_ticks;
  EXPECT_EQ(GetLiveness(before), Liveness::kDead);
}

TEST(IdentityTest, OfAnotherMachineNothingIsKnown) {
  ProcessIdentity other = ThisProcess();
  other.machine += "x";
  EXPECT_EQ(GetLiveness(other), Liveness::kElsewhere);
  other.machine = "";
  EXPECT_EQ(GetLiveness(other), Liveness::kElsewhere);
}

TEST(IdentityTest, AStoppedProcessIsAliveAndAZombieIsDead) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t child = fork();
  if (child == 0) {
    const ProcessIdentity self = ThisProcess();
    const bool written = write(pipes[1], &self.start_ticks, sizeof self.start_ticks) > 0;
    raise(SIGSTOP);
    _exit(written ? 0 : 1);
  }
  ProcessIdentity identity = ThisProcess();
  identity.pid = child;
  ASSERT_EQ(read(pipes[0], &identity.start_ticks, sizeof identity.start_ticks),
            static_cast<ssize_t>(sizeof identity.start_ticks));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_TRUE(WIFSTOPPED(status));
  EXPECT_EQ(GetLiveness(identity), Liveness::kAlive);
  kill(child, SIGKILL);
  siginfo_t info = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(GetLiveness(identity), Liveness::kDead);
  waitpid(child, &status, 0);
  EXPECT_EQ(GetLiveness(identity), Liveness::kDead);
  close(pipes[0]);
  close(pipes[1]);
}

}  // namespace
}  // namespace muster::process
