#include "muster/process/file_limit.h"

#include <sys/resource.h>

#include "gtest/gtest.h"
#include "muster/base/strings.h"
#include "muster/process/child.h"

namespace muster::process {
namespace {

TEST(FileLimitTest, IsRaisedHereAndAsItWasInChildren) {
  rlimit old = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
  ASSERT_GT(old.rlim_max, 200u);
  const rlimit low = {.rlim_cur = 200, .rlim_max = old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  RaiseFileLimit();
  rlimit raised = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &raised), 0);
  EXPECT_EQ(raised.rlim_cur, old.rlim_max);
  const auto child = Child::Start({.argv = {"/bin/sh", "-c", "test $(ulimit -n) = 200"}});
  ASSERT_TRUE(child.ok()) << child.status();
  const auto exit = (*child)->Wait(30);
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->code, 0);
  RestoreFileLimit();
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &raised), 0);
  EXPECT_EQ(raised.rlim_cur, 200u);
  // Later tests of this program start children too.
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
  RaiseFileLimit();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
}

}  // namespace
}  // namespace muster::process
