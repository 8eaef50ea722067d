#include "muster/base/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace muster {
namespace {

// A pseudo terminal; TERM and NO_COLOR are as the test sets them.
class TerminalTest : public testing::Test {
 protected:
  TerminalTest() {
    master_ = posix_openpt(O_RDWR | O_NOCTTY);
    EXPECT_EQ(grantpt(master_), 0);
    EXPECT_EQ(unlockpt(master_), 0);
    terminal_ = open(ptsname(master_), O_RDWR | O_NOCTTY);
    EXPECT_GE(terminal_, 0);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
  }
  ~TerminalTest() override {
    close(terminal_);
    close(master_);
  }
  int master_ = -1, terminal_ = -1;
};

TEST_F(TerminalTest, AFileOrADumbTerminalIsNotRewritten) {
  EXPECT_TRUE(CanRewrite(terminal_));
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(CanRewrite(terminal_));
  EXPECT_FALSE(WantsColor(terminal_));
  setenv("TERM", "xterm", 1);
  const int file = open("/dev/null", O_WRONLY);
  EXPECT_FALSE(CanRewrite(file));
  close(file);
}

TEST_F(TerminalTest, NoColorForbidsColoursUnlessItIsEmpty) {
  EXPECT_TRUE(WantsColor(terminal_));
  setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(WantsColor(terminal_));
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(WantsColor(terminal_));
  EXPECT_TRUE(CanRewrite(terminal_));
}

TEST_F(TerminalTest, TheWidthIsTheTerminalsOr80) {
  winsize size = {.ws_row = 24, .ws_col = 61, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(ioctl(master_, TIOCSWINSZ, &size), 0);
  EXPECT_EQ(TerminalWidth(terminal_), 61);
  size.ws_col = 0;
  ASSERT_EQ(ioctl(master_, TIOCSWINSZ, &size), 0);
  EXPECT_EQ(TerminalWidth(terminal_), 80);
  EXPECT_EQ(TerminalWidth(-1), 80);
}

TEST(FitColumnsTest, CutsWholeCharacters) {
  EXPECT_EQ(FitColumns("step 12", 7), "step 12");
  EXPECT_EQ(FitColumns("step 123", 7), "step...");
  EXPECT_EQ(FitColumns("größe", 5), "größe");
  EXPECT_EQ(FitColumns("größer", 5), "gr...");
  EXPECT_EQ(FitColumns("üüüüüü", 5), "üü...");
  EXPECT_EQ(FitColumns("step", 2), "..");
  EXPECT_EQ(CountColumns("größe"), 5);
}

TEST(FitColumnsTest, CountsWideAndCombiningCharactersAsTerminalsDo) {
  EXPECT_EQ(CountColumns("€"), 1);
  EXPECT_EQ(CountColumns("名前"), 4);
  EXPECT_EQ(CountColumns("한글ｱ"), 5) << "the last one is half-width";
  EXPECT_EQ(CountColumns("e\u0301"), 1);
  EXPECT_EQ(CountColumns("\U0001F600"), 2);
  EXPECT_EQ(CountColumns("caf\xe9"), 4) << "a byte that is not UTF-8";
  EXPECT_EQ(CountColumns("\xe4\xb8"), 1) << "a character that was cut";
  EXPECT_EQ(FitColumns("名前名前", 7), "名前...");
  EXPECT_EQ(FitColumns("名前名前", 6), "名...");
  EXPECT_EQ(FitColumns("名前名前", 8), "名前名前");
  EXPECT_EQ(PadColumns("名前", 6), "名前  ");
  EXPECT_EQ(PadColumns("größe", 4), "größe");
}

TEST(FitColumnsTest, ControlCharactersStayOnTheirLine) {
  EXPECT_EQ(EscapeControls("a\nb\tc\r\x1b[1m\x7f\\ größe"), "a\\nb\\tc\\r\\x1b[1m\\x7f\\ größe");
}

}  // namespace
}  // namespace muster
