#include "muster/checkpoint/async_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "muster/checkpoint/checkpoint_test_util.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::checkpoint {
namespace {

using ::testing::HasSubstr;

// Making a large file waits until the gate is open.
class GatedFileSystem : public io::FaultFileSystem {
 public:
  using FaultFileSystem::FaultFileSystem;
  absl::StatusOr<std::unique_ptr<io::WritableFile>> OpenForLargeWrite(
      const std::string& path) override {
    {
      std::unique_lock lock(mutex_);
      opened_.wait(lock, [&] { return open_; });
    }
    return FaultFileSystem::OpenForLargeWrite(path);
  }
  void Open() {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    opened_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

class AsyncSaverTest : public ::testing::Test {
 protected:
  AsyncSaverTest() : memory_(io::NewMemoryFileSystem()), files_(*memory_) {}

  absl::Status Start(AsyncSaver& saver, int64_t step) {
    weights_.Change(saver.frozen(), static_cast<float>(step));
    return saver.Start(step, weights_.tensors(), {{"position", StrCat("at ", step)}});
  }

  std::unique_ptr<io::FileSystem> memory_;
  GatedFileSystem files_;
  FakeClock clock_;
  Weights weights_;
};

TEST_F(AsyncSaverTest, WritesTheValuesFromWhenItStarted) {
  AsyncSaver saver(files_, clock_, "m", {});
  EXPECT_FALSE(saver.busy());
  ASSERT_TRUE(Start(saver, 5).ok());
  EXPECT_TRUE(saver.busy());
  EXPECT_TRUE(saver.Check().ok());
  EXPECT_EQ(saver.prefix(), "");
  weights_.Change(saver.frozen(), 6);
  EXPECT_TRUE(absl::IsNotFound(LoadLatest(*memory_).status()));
  files_.Open();
  ASSERT_TRUE(saver.Wait().ok());
  EXPECT_FALSE(saver.busy());
  EXPECT_EQ(saver.prefix(), "m/model.ckpt-5");
  const auto loaded = LoadLatest(*memory_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->value, 5);
}

TEST_F(AsyncSaverTest, ASecondSaveWaitsForTheFirst) {
  files_.Open();
  AsyncSaver saver(files_, clock_, "m", {});
  for (int step = 1; step <= 30; ++step) ASSERT_TRUE(Start(saver, step).ok());
  weights_.Change(saver.frozen(), 31);
  const auto prefix = saver.SaveNow(31, weights_.tensors(), {{"position", "at 31"}});
  ASSERT_TRUE(prefix.ok()) << prefix.status();
  EXPECT_EQ(*prefix, "m/model.ckpt-31");
  EXPECT_EQ(LoadLatest(*memory_)->value, 31);
  EXPECT_EQ(ReadState(*memory_, "m")->all.size(), 5u);
}

TEST_F(AsyncSaverTest, AFailureIsReturnedOnceWithItsCause) {
  AsyncSaver saver(files_, clock_, "m", {});
  files_.FailNth(io::FileOperation::kSync, 1, absl::ResourceExhaustedError("disk full"));
  ASSERT_TRUE(Start(saver, 5).ok());
  files_.Open();
  absl::Status failure;
  while (failure.ok()) failure = saver.Check();  // as a training asks after every step
  EXPECT_TRUE(absl::IsResourceExhausted(failure)) << failure;
  EXPECT_THAT(std::string(failure.message()),
              ::testing::AllOf(HasSubstr("saving m/model.ckpt-5"), HasSubstr("disk full")));
  EXPECT_TRUE(saver.Check().ok());
  EXPECT_EQ(saver.prefix(), "");
  ASSERT_TRUE(Start(saver, 6).ok());
  ASSERT_TRUE(saver.Wait().ok());
  EXPECT_EQ(LoadLatest(*memory_)->value, 6);
}

TEST_F(AsyncSaverTest, AFailureStopsTheNextStart) {
  files_.Open();
  AsyncSaver saver(files_, clock_, "m", {});
  files_.FailNth(io::FileOperation::kRename, 1, absl::InternalError("made to fail"));
  ASSERT_TRUE(Start(saver, 5).ok());
  EXPECT_TRUE(absl::IsInternal(Start(saver, 6)));
  EXPECT_TRUE(absl::IsNotFound(LoadLatest(*memory_).status()));
}

TEST_F(AsyncSaverTest, TheDestructorWaitsForASave) {
  files_.Open();
  {
    AsyncSaver saver(files_, clock_, "m", {});
    ASSERT_TRUE(Start(saver, 5).ok());
  }
  EXPECT_EQ(LoadLatest(*memory_)->value, 5);
}

}  // namespace
}  // namespace muster::checkpoint
