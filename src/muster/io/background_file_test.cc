#include "muster/io/background_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "muster/io/fault_file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::io {
namespace {

class BackgroundFileTest : public ::testing::Test {
 protected:
  BackgroundFileTest() : memory_(NewMemoryFileSystem()), files_(*memory_) {}

  BackgroundFile Open(double seconds) {
    return BackgroundFile(std::move(files_.OpenForWrite("f").value()), seconds);
  }
  std::string Contents() { return ReadFile(*memory_, "f").value_or("none"); }
  // Waits for a change that another thread makes.
  template <typename Condition>
  static bool Becomes(Condition&& condition) {
    for (int i = 0; i < 2000 && !condition(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return condition();
  }

  std::unique_ptr<FileSystem> memory_;
  FaultFileSystem files_;
};

TEST_F(BackgroundFileTest, WhatIsAppendedIsSentWithoutAFlush) {
  BackgroundFile file = Open(0.01);
  ASSERT_TRUE(file.Append("one ").ok());
  EXPECT_TRUE(Becomes([&] { return Contents() == "one "; }));
  ASSERT_TRUE(file.Append("two ").ok());
  EXPECT_TRUE(Becomes([&] { return Contents() == "one two "; }));
  ASSERT_TRUE(file.Append("three").ok());
  ASSERT_TRUE(file.Close().ok());
  EXPECT_EQ(Contents(), "one two three");
  EXPECT_EQ(file.Append("x").code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(BackgroundFileTest, TheFirstBytesAreSentAtOnceAndTheOthersTogether) {
  BackgroundFile file = Open(3600);
  ASSERT_TRUE(file.Append("a").ok());
  EXPECT_TRUE(Becomes([&] { return Contents() == "a"; }));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(file.Append("b").ok());
    ASSERT_TRUE(file.Flush().ok());
  }
  EXPECT_EQ(files_.count(FileOperation::kFlush), 1);
  ASSERT_TRUE(file.Sync().ok());
  EXPECT_EQ(files_.count(FileOperation::kFlush), 2);
  EXPECT_EQ(Contents().size(), 101u);
  ASSERT_TRUE(file.Close().ok());
}

TEST_F(BackgroundFileTest, StorageThatStallsDoesNotHoldUpItsOwner) {
  std::promise<void> release;
  files_.StallNth(FileOperation::kFlush, 1, [&] { release.get_future().wait(); });
  BackgroundFile file = Open(0);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(file.Append("b").ok());
  release.set_value();
  ASSERT_TRUE(file.Close().ok());
  EXPECT_EQ(Contents().size(), 100u);
}

TEST_F(BackgroundFileTest, AnErrorReachesTheNextCall) {
  files_.FailNth(FileOperation::kFlush, 1, absl::ResourceExhaustedError("full"));
  BackgroundFile file = Open(0);
  ASSERT_TRUE(file.Append("a").ok());
  EXPECT_TRUE(Becomes([&] { return !file.Flush().ok(); }));
  EXPECT_EQ(file.Append("b").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(file.Sync().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(file.Close().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace muster::io
