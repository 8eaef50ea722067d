#include "muster/files/hdfs/read_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

namespace muster::files {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

char ByteAt(uint64_t offset) { return static_cast<char>(offset * 31 + offset / 4093); }

// A file whose fetches are counted; they check that they stay within it.
class CountedFile {
 public:
  explicit CountedFile(uint64_t size) : size_(size) {}

  ReadWindow::Fetch fetch() {
    return [this](uint64_t offset, size_t size, char* buffer) -> absl::Status {
      EXPECT_LE(offset + size, size_);
      ++fetches;
      bytes += size;
      if (fails.exchange(false)) return absl::UnavailableError("made to fail");
      for (size_t i = 0; i < size; ++i) buffer[i] = ByteAt(offset + i);
      return absl::OkStatus();
    };
  }
  absl::Status Read(ReadWindow& window, uint64_t offset, size_t size) const {
    std::vector<char> buffer(size);
    MUSTER_RETURN_IF_ERROR(window.Read(offset, size, buffer.data(), size_));
    for (size_t i = 0; i < size; ++i) {
      if (buffer[i] != ByteAt(offset + i)) return absl::InternalError("another byte");
    }
    return absl::OkStatus();
  }

  std::atomic<int> fetches = 0;
  std::atomic<uint64_t> bytes = 0;
  std::atomic<bool> fails = false;

 private:
  const uint64_t size_;
};

TEST(ReadWindowTest, AFileThatIsReadInOrderTakesFewFetches) {
  for (const size_t step : {size_t{10'000}, size_t{300'007}, size_t{kMiB}, size_t{5 * kMiB}}) {
    const uint64_t size = 64 * kMiB + 12'345;
    CountedFile file(size);
    ReadWindow window(file.fetch());
    for (uint64_t at = 0; at < size; at += step) {
      ASSERT_TRUE(file.Read(window, at, std::min<uint64_t>(step, size - at)).ok());
    }
    EXPECT_EQ(file.bytes, size) << "each byte is fetched once";
    EXPECT_LE(file.fetches, 10) << step;
  }
}

TEST(ReadWindowTest, ThreadsReadTheChunksOfAFileAtTheSameTime) {
  const uint64_t size = 64 * kMiB;
  CountedFile file(size);
  ReadWindow window(file.fetch());
  std::atomic<uint64_t> next = 0;
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (uint64_t at = next++ * kMiB; at < size; at = next++ * kMiB) {
        if (!file.Read(window, at, kMiB).ok()) ++wrong;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TEST(ReadWindowTest, LargeReadsAtRandomFetchWhatTheyAskFor) {
  CountedFile file(1000 * kMiB);
  ReadWindow window(file.fetch());
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(file.Read(window, random() % 999 * kMiB, kMiB).ok());
  }
  EXPECT_EQ(file.bytes, 20 * kMiB);
}

TEST(ReadWindowTest, SmallReadsAtRandomKeepWhatLiesAround) {
  CountedFile file(1000 * kMiB);
  ReadWindow window(file.fetch());
  for (const uint64_t place : {uint64_t{700}, uint64_t{3}, uint64_t{500}}) {
    ASSERT_TRUE(file.Read(window, place * kMiB, 100).ok());
    ASSERT_TRUE(file.Read(window, place * kMiB + 100, 100).ok());
  }
  EXPECT_EQ(file.fetches, 3);
  EXPECT_EQ(file.bytes, 3 * ReadWindow::kLeastRead);
}

TEST(ReadWindowTest, AReadThatWasOvertakenLeavesTheWindow) {
  CountedFile file(64 * kMiB);
  ReadWindow window(file.fetch());
  for (uint64_t at = 0; at < 8; ++at) ASSERT_TRUE(file.Read(window, at * kMiB, kMiB).ok());
  const int before = file.fetches;
  ASSERT_TRUE(file.Read(window, 6 * kMiB + 5, kMiB).ok());
  ASSERT_TRUE(file.Read(window, 8 * kMiB, kMiB).ok());
  EXPECT_LE(file.fetches, before + 1);
}

TEST(ReadWindowTest, AnErrorIsReturnedAndTheNextReadFetchesAnew) {
  CountedFile file(64 * kMiB);
  ReadWindow window(file.fetch());
  for (uint64_t at = 0; at < 4; ++at) ASSERT_TRUE(file.Read(window, at * kMiB, kMiB).ok());
  file.fails = true;
  int errors = 0;
  for (uint64_t at = 4; at < 64; ++at) {
    if (!file.Read(window, at * kMiB, kMiB).ok()) ++errors;
  }
  EXPECT_EQ(errors, 1);
  EXPECT_TRUE(file.Read(window, 10 * kMiB, kMiB).ok());
}

}  // namespace
}  // namespace muster::files
