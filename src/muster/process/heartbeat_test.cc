#include "muster/process/heartbeat.h"

#include <cstdlib>

#include "muster/process/test_program.h"

namespace muster::process {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// A shell that is watched.
class Watched {
 public:
  explicit Watched(const std::string& script, bool beats = false) {
    ChildSpec spec = Shell(script);
    heartbeat_.emplace(*HeartbeatWatch::Create(&spec, beats));
    spec.stdout_fd = said_.writing.get();
    child_ = *Child::Start(spec);
    heartbeat_->CloseWriter();
  }
  // Waits until the program has said something.
  void WaitForWord() const {
    char word;
    ASSERT_EQ(read(said_.reading.get(), &word, 1), 1);
  }
  // So much later.
  double Look(double seconds) {
    return heartbeat_->Look(now_ += static_cast<int64_t>(seconds * kSecond));
  }

 private:
  TestPipe said_;
  std::optional<HeartbeatWatch> heartbeat_;
  std::unique_ptr<Child> child_;
  int64_t now_ = 0;
};

TEST(HeartbeatTest, SilenceIsCountedFromTheFirstBeat) {
  Watched quiet("echo; exec sleep 1000");
  quiet.WaitForWord();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(quiet.Look(1), 0);
  Watched beats("printf . >&3; echo; exec sleep 1000");
  beats.WaitForWord();
  EXPECT_EQ(beats.Look(1), 0);
  EXPECT_DOUBLE_EQ(beats.Look(0.5), 0.5);
  EXPECT_DOUBLE_EQ(beats.Look(0.75), 1.25);
}

TEST(HeartbeatTest, SilenceOfAProgramThatIsKnownToBeatIsCountedFromItsStart) {
  Watched quiet("echo; exec sleep 1000", /*beats=*/true);
  quiet.WaitForWord();
  quiet.Look(0);
  EXPECT_DOUBLE_EQ(quiet.Look(0.5), 0.5);
  EXPECT_DOUBLE_EQ(quiet.Look(1), 1.5);
}

TEST(HeartbeatTest, TimeInWhichNobodyLookedDoesNotCount) {
  Watched beats("printf . >&3; echo; exec sleep 1000");
  beats.WaitForWord();
  EXPECT_EQ(beats.Look(1), 0);
  EXPECT_DOUBLE_EQ(beats.Look(3600), 1);
}

TEST(HeartbeatTest, AProgramThatEndsItsHeartbeatIsWatchedNoLonger) {
  Watched ends("printf '..!' >&3; echo; exec sleep 1000");
  ends.WaitForWord();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ends.Look(1), 0);
}

TEST(HeartbeatTest, BeatsForItsOwnStarterAlone) {
  TestPipe pipe;
  unsetenv("MUSTER_PULSE");
  EXPECT_EQ(Heartbeat::StartIfAsked(), nullptr);
  const std::string descriptor = StrCat(pipe.writing.get());
  for (const std::string& value :
       {StrCat(descriptor, ":", getppid() + 1), StrCat(descriptor, ":"), descriptor,
        StrCat(descriptor, ":", getppid(), "x"), StrCat("0:", getppid()), std::string()}) {
    setenv("MUSTER_PULSE", value.c_str(), 1);
    EXPECT_EQ(Heartbeat::StartIfAsked(), nullptr) << value;
  }
  setenv("MUSTER_PULSE", StrCat(descriptor, ":", getppid()).c_str(), 1);
  std::unique_ptr<Heartbeat> heartbeat = Heartbeat::StartIfAsked();
  unsetenv("MUSTER_PULSE");
  ASSERT_NE(heartbeat, nullptr);
  char beat = 0;
  ASSERT_EQ(read(pipe.reading.get(), &beat, 1), 1);
  EXPECT_EQ(beat, '.');
  heartbeat.reset();
  const std::string rest = pipe.ReadToEnd();
  ASSERT_FALSE(rest.empty());
  EXPECT_EQ(rest.back(), '!');
}

}  // namespace
}  // namespace muster::process
