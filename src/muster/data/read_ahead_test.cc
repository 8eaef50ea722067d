#include "muster/data/read_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <numeric>
#include <set>
#include <thread>

#include "muster/base/test_size.h"
#include "muster/data/reader.h"
#include "muster/formats/csv.h"
#include "muster/formats/example.h"

namespace muster::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kDeadline{60};

std::vector<uint32_t> FirstChunks(size_t count) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// A source whose chunks have one record: the chunk's number.
class OneRecordSource : public RecordSource {
 public:
  // The thread that reads a chunk calls `on_read`, which returns the result of the read.
  using OnRead = std::function<absl::Status(size_t chunk)>;
  explicit OneRecordSource(size_t chunks, OnRead on_read = {})
      : chunks_(chunks), on_read_(std::move(on_read)) {}
  std::vector<ChunkInfo>& mutable_chunks() { return chunks_; }
  // Returns the chunks whose reading has begun.
  std::set<size_t> begun() const {
    std::lock_guard lock(mutex_);
    return begun_;
  }

  // Returns the chunks of WillRead, in the order of its calls.
  std::vector<size_t> announced() const {
    std::lock_guard lock(mutex_);
    return announced_;
  }

  const std::vector<std::string>& files() const override { return files_; }
  const std::vector<ChunkInfo>& chunks() const override { return chunks_; }
  void WillRead(size_t chunk) const override {
    std::lock_guard lock(mutex_);
    announced_.push_back(chunk);
  }
  absl::StatusOr<std::shared_ptr<const Chunk>> Read(size_t chunk) const override {
    {
      std::lock_guard lock(mutex_);
      begun_.insert(chunk);
    }
    if (on_read_) MUSTER_RETURN_IF_ERROR(on_read_(chunk));
    auto made = std::make_shared<Chunk>();
    made->bytes = StrCat(chunk);
    made->records.emplace_back(made->bytes);
    made->offsets.push_back(0);
    return made;
  }
  absl::StatusOr<std::unique_ptr<ChunkStream>> Stream(size_t chunk) const override {
    return NewOnePieceStream(*this, chunk);
  }
  absl::StatusOr<std::unique_ptr<formats::RowDecoder>> NewDecoder(
      const formats::Schema& schema) const override {
    return formats::NewCsvDecoder(schema, {"id"});
  }
  absl::Status CountBad(size_t, const Chunk&) const override { return absl::OkStatus(); }
  uint64_t bad_records() const override { return 0; }
  uint64_t fingerprint() const override { return 1; }

 private:
  const std::vector<std::string> files_ = {"numbers"};
  std::vector<ChunkInfo> chunks_;
  const OnRead on_read_;
  mutable std::mutex mutex_;
  mutable std::set<size_t> begun_;
  mutable std::vector<size_t> announced_;
};

// Lets reads begin and end when a test allows it.
class Gate {
 public:
  void Open() {
    {
      std::lock_guard lock(mutex_);
      open_ = true;
    }
    changed_.notify_all();
  }
  absl::Status Pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    if (changed_.wait_for(lock, kDeadline, [&] { return open_; })) return absl::OkStatus();
    return absl::DeadlineExceededError("the gate stayed shut");
  }
  // Returns whether `count` reads wait before the deadline.
  bool AwaitWaiting(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [&] { return waiting_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

TEST(ReadAheadTest, GivesChunksInTheOrderOfTheEpoch) {
  const OneRecordSource source(60);
  for (const int ahead : {0, 1, 2, 7, 64}) {
    ReadAhead chunks(source, ahead);
    std::vector<uint32_t> order = FirstChunks(60);
    for (int epoch = 0; epoch < 5; ++epoch) {
      std::rotate(order.begin(), order.begin() + 7, order.end());
      chunks.Begin(order);
      for (uint32_t i = 0; i < order.size(); ++i) {
        const auto chunk = chunks.Read(i);
        ASSERT_TRUE(chunk.ok()) << chunk.status();
        ASSERT_EQ((*chunk)->records[0], StrCat(order[i]));
      }
    }
  }
}

// A partition of a log reads on for the next chunk, and begins anew for another one.
TEST(ReadAheadTest, AnnouncesEachReadInTheOrderOfTheEpoch) {
  const OneRecordSource source(100, [](size_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // so that chunks are read ahead
    return absl::OkStatus();
  });
  ReadAhead chunks(source, 8);
  std::vector<uint32_t> order = FirstChunks(100);
  std::reverse(order.begin(), order.end());
  chunks.Begin(order);
  for (uint32_t i = 0; i < order.size(); ++i) ASSERT_TRUE(chunks.Read(i).ok());
  EXPECT_THAT(source.announced(), ::testing::ElementsAreArray(order));
}

TEST(ReadAheadTest, ReadsTheNextChunksWhileOneIsUsed) {
  Gate gate;
  const OneRecordSource source(
      10, [&](size_t chunk) { return chunk == 0 ? absl::OkStatus() : gate.Pass(); });
  ReadAhead chunks(source, 3);
  chunks.Begin(FirstChunks(10));
  ASSERT_TRUE(chunks.Read(0).ok());
  EXPECT_TRUE(gate.AwaitWaiting(3)) << "three reads must run at once";
  EXPECT_THAT(source.begun(), ElementsAre(0, 1, 2, 3));
  gate.Open();
  EXPECT_EQ((*chunks.Read(1))->records[0], "1");
}

TEST(ReadAheadTest, IsNeverFurtherAheadThanItMay) {
  for (const size_t ahead : {0, 1, 2, 5}) {
    std::atomic<size_t> used{0};
    std::atomic<bool> too_far{false};
    const OneRecordSource source(300, [&](size_t chunk) {
      if (chunk > used + ahead) too_far = true;
      return absl::OkStatus();
    });
    ReadAhead chunks(source, static_cast<int>(ahead));
    chunks.Begin(FirstChunks(300));
    for (uint32_t i = 0; i < 300; ++i) {
      used = i;
      ASSERT_TRUE(chunks.Read(i).ok());
    }
    EXPECT_FALSE(too_far) << ahead;
  }
}

TEST(ReadAheadTest, TheConsumerReadsByItselfUntilAReadWaits) {
  constexpr size_t kChunks = 400, kSlow = 200;
  const auto consumer = std::this_thread::get_id();
  std::mutex mutex;
  std::set<size_t> by_others;
  const OneRecordSource source(kChunks, [&](size_t chunk) {
    // From this chunk on, reads wait like those of a file on another machine.
    if (chunk >= kSlow) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::lock_guard lock(mutex);
    if (std::this_thread::get_id() != consumer) by_others.insert(chunk);
    return absl::OkStatus();
  });
  ReadAhead chunks(source, 2);
  chunks.Begin(FirstChunks(kChunks));
  for (uint32_t i = 0; i < kChunks; ++i) {
    ASSERT_TRUE(chunks.Read(i).ok());
    // While the consumer uses a chunk, a thread that was told to has time to read the next ones.
    if (i < kSlow) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const auto first_slow = by_others.lower_bound(kSlow);
  // On a loaded machine some of these reads may wait, too.
  EXPECT_LT(std::distance(by_others.begin(), first_slow), kSlow / 2);
  EXPECT_NE(first_slow, by_others.end()) << "slow reads were not read ahead";
}

TEST(ReadAheadTest, AnErrorIsReturnedForItsChunk) {
  Gate gate;  // chunk 4 fails before chunk 3 is read
  const OneRecordSource source(10, [&](size_t chunk) -> absl::Status {
    if (chunk == 3) return gate.Pass();
    if (chunk == 4) {
      gate.Open();
      return absl::UnavailableError("chunk 4 is away");
    }
    return absl::OkStatus();
  });
  ReadAhead chunks(source, 2);
  chunks.Begin(FirstChunks(10));
  for (uint32_t i = 0; i < 4; ++i) {
    const auto chunk = chunks.Read(i);
    ASSERT_TRUE(chunk.ok()) << i << ": " << chunk.status();
  }
  EXPECT_EQ(chunks.Read(4).status(), absl::UnavailableError("chunk 4 is away"));
}

TEST(ReadAheadTest, StopDoesNotWaitForARead) {
  Gate gate;
  const OneRecordSource source(
      100, [&](size_t chunk) { return chunk == 0 ? absl::OkStatus() : gate.Pass(); });
  ReadAhead chunks(source, 2);
  chunks.Begin(FirstChunks(100));
  ASSERT_TRUE(chunks.Read(0).ok());
  ASSERT_TRUE(gate.AwaitWaiting(2));
  auto waiting = std::async(std::launch::async, [&] { return chunks.Read(1).status(); });
  chunks.Stop();
  ASSERT_EQ(waiting.wait_for(kDeadline), std::future_status::ready);
  EXPECT_EQ(waiting.get().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(chunks.Read(2).status().code(), absl::StatusCode::kCancelled);
  EXPECT_LE(*source.begun().rbegin(), 3u) << "after Stop no read may begin";
  gate.Open();  // the destructor waits for the reads in progress, which the file system ends
}

TEST(ReadAheadTest, ACompressedChunkIsReadWhenItIsRequested) {
  OneRecordSource source(4);
  source.mutable_chunks()[2].compressed = true;
  ReadAhead chunks(source, 3);
  chunks.Begin(FirstChunks(4));
  ASSERT_TRUE(chunks.Read(0).ok());
  ASSERT_TRUE(chunks.Read(1).ok());
  EXPECT_FALSE(source.begun().contains(2));
  const auto stream = chunks.Stream(2);
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ((*(*stream)->Next())->records[0], "2");
  EXPECT_EQ((*chunks.Read(3))->records[0], "3");
}

TEST(ReadAheadTest, AReaderIsStoppedFromOutside) {
  Gate gate;
  const auto source = std::make_shared<OneRecordSource>(
      100, [&](size_t chunk) { return chunk == 0 ? absl::OkStatus() : gate.Pass(); });
  formats::Field field;
  field.name = "id";
  field.type = formats::ValueType::kInt;
  const formats::Schema schema = {{field}};
  const auto reader = *BatchReader::Create(source, schema, {.batch_size = 1});
  formats::Columns columns(schema);
  ASSERT_TRUE(*reader->Next(&columns));
  ASSERT_TRUE(gate.AwaitWaiting(2));
  auto waiting = std::async(std::launch::async, [&] { return reader->Next(&columns).status(); });
  reader->Stop();
  ASSERT_EQ(waiting.wait_for(kDeadline), std::future_status::ready);
  EXPECT_THAT(waiting.get().message(), HasSubstr("was stopped"));
  gate.Open();
}

}  // namespace
}  // namespace muster::data
