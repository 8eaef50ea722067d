#include "muster/launch/slots/state_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "muster/files/file_systems.h"
#include "muster/io/memory_file_system.h"

namespace muster::launch::slots {
namespace {

constexpr auto kLong = std::chrono::seconds(30);  // never reached

absl::Status WaitForEnd(StateWatch& watch) {
  const auto end = std::chrono::steady_clock::now() + kLong;
  while (watch.status().ok() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return watch.status();
}

TEST(StateWatch, SeesThatTheStateWasTaken) {
  const auto files = io::NewMemoryFileSystem();
  const SystemClock clock;
  ASSERT_TRUE(io::WriteFileAtomically(*files, "/journal-1", "x").ok());
  StateWatch watch({.journal = "/journal-1", .look_seconds = 0.001}, *files, clock);
  EXPECT_TRUE(watch.status().ok());
  ASSERT_TRUE(files->Rename("/journal-1", "/journal-2").ok());
  EXPECT_THAT(std::string(ToStd(WaitForEnd(watch).message())), testing::HasSubstr("is gone"));
}

TEST(StateWatch, EndsWhenTheStateWasNotSeenForLong) {
  const auto files = files::OpenFileSystems();
  const SystemClock clock;
  // A path of a kind that is not known is neither seen nor gone.
  StateWatch watch(
      {.journal = "other://x/journal", .patience_seconds = 0.05, .look_seconds = 0.001}, *files,
      clock);
  const absl::Status ended = WaitForEnd(watch);
  EXPECT_TRUE(absl::IsAborted(ended)) << ended;
}

}  // namespace
}  // namespace muster::launch::slots
