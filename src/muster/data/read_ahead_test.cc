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
#include "muster/data/test_data.h"
#include "muster/formats/csv.h"
#include "muster/formats/example.h"
#include "muster/formats/tfrecord.h"
#include "muster/io/memory_file_system.h"

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

  const std::vector<std::string>& files() const override { return files_; }
  const std::vector<ChunkInfo>& chunks() const override { return chunks_; }
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

formats::Schema NumberSchema() {
  formats::Field field;
  field.name = "id";
  field.type = formats::ValueType::kInt;
  return {{field}};
}

// Returns a tf.Example of about 1000 bytes.
std::string FillerExample() {
  formats::Field filler;
  filler.name = "filler";
  const formats::Schema schema = {{filler}};
  formats::Columns columns(schema);
  columns.mutable_column(0).strings.push_back(columns.Store(std::string(1000, 'f')));
  columns.AddRow();
  std::string record;
  formats::ExampleEncoder(schema).Encode(columns, 0, &record);
  return record;
}

// Everything that a reader returns, from its start to its end.
struct Reading {
  std::vector<std::vector<int64_t>> batches = {};
  std::vector<std::string> positions = {};
  std::vector<std::string> bad = {};
  absl::Status end = {};
  friend bool operator==(const Reading&, const Reading&) = default;
};

class ReadAheadFilesTest : public testing::Test {
 protected:
  // Writes three CSV files of several chunks, with a bad row in each.
  void SetUp() override {
    for (int file = 0; file < 3; ++file) {
      std::string text = "id,filler\n";
      for (int i = 0; i < 3000; ++i) {
        const std::string id = i == 1000 * file ? "oops" : StrCat(3000 * file + i);
        text += StrCat(id, ",", std::string(1000, 'x'), "\n");
      }
      WriteText(*files_, StrCat("f", file, ".csv"), text);
    }
  }

  static Reading ReadAll(io::FileSystem& files, ReaderSpec spec, int chunks_ahead,
                         const Position* start = nullptr, int batches = 1 << 30) {
    Reading reading;
    spec.chunks_ahead = chunks_ahead;
    const auto take_bad = [&](const BadRecord& record) { reading.bad.push_back(record.where); };
    spec.take_bad_record = take_bad;
    auto source =
        OpenSource(files, {.patterns = {"f*"}, .take_bad_record = take_bad}, spec.max_bad_records);
    EXPECT_TRUE(source.ok()) << source.status();
    auto reader = BatchReader::Create(*std::move(source), NumberSchema(), spec, start);
    if (!reader.ok()) return {.end = reader.status()};
    formats::Columns columns(NumberSchema());
    while (batches-- > 0) {
      const auto more = (*reader)->Next(&columns);
      reading.end = more.status();
      if (!more.ok() || !*more) break;
      reading.batches.push_back(columns.column(0).ints);
      reading.positions.push_back(SerializePosition((*reader)->position()));
    }
    return reading;
  }

  const std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
};

TEST_F(ReadAheadFilesTest, BatchesPositionsAndBadRowsAreTheSame) {
  for (const bool shuffle : {false, true}) {
    const ReaderSpec spec = {.batch_size = 300,
                             .shuffle = shuffle,
                             .seed = 3,
                             .open_chunks = 3,
                             .epochs = 2,
                             .max_bad_records = 3};
    const Reading wanted = ReadAll(*files_, spec, 0);
    EXPECT_TRUE(wanted.end.ok()) << wanted.end;
    EXPECT_EQ(wanted.bad.size(), 6u);
    for (const int ahead : kUnderSanitizer ? std::vector{2} : std::vector{1, 2, 9}) {
      EXPECT_EQ(ReadAll(*files_, spec, ahead), wanted) << ahead;
      // Continues from a position in the middle of the second epoch.
      const Position start = *ParsePosition(wanted.positions[40]);
      const Reading rest = ReadAll(*files_, spec, ahead, &start);
      EXPECT_EQ(rest.batches, std::vector(wanted.batches.begin() + 41, wanted.batches.end()));
    }
  }
}

// Damage is reported at the same place, after the same batches, even if it was read before.
TEST_F(ReadAheadFilesTest, BadRecordsOfAFileAreCountedInTheirOrder) {
  const std::vector<std::string> records(4000, FillerExample());
  const size_t frame = records[0].size() + formats::kTfRecordOverhead;
  for (int file = 0; file < 3; ++file) {
    WriteTfRecords(*files_, StrCat("t", file), records, formats::Compression::kNone,
                   [&](std::string* frames) {
                     for (const size_t record : {0, 2500, 3900}) {
                       (*frames)[record * frame + 20] ^= 1;  // a byte of the record itself
                     }
                   });
  }
  for (const bool shuffle : {false, true}) {
    for (const uint64_t budget : {0, 4, 9}) {
      std::vector<std::vector<std::string>> told;
      for (const int ahead : kUnderSanitizer ? std::vector{0, 2} : std::vector{0, 1, 2, 9}) {
        std::vector<std::string>& bad = told.emplace_back();
        const auto take = [&](const BadRecord& record) { bad.push_back(record.where); };
        std::shared_ptr<const RecordSource> source =
            *OpenSource(*files_, {.patterns = {"t*"}, .take_bad_record = take}, budget);
        ReaderSpec spec = {.batch_size = 100, .shuffle = shuffle, .open_chunks = 2};
        spec.max_bad_records = budget;
        spec.chunks_ahead = ahead;
        formats::Columns columns({});
        const auto reader = *BatchReader::Create(source, {}, spec);
        while (true) {
          const auto more = reader->Next(&columns);
          bad.push_back(StrCat(more.status().ToString(), " ", columns.rows()));
          if (!more.ok() || !*more) break;
        }
        EXPECT_EQ(bad, told[0]) << ahead << " " << budget;
      }
      EXPECT_EQ(told[0].back().starts_with("OK"), budget == 9) << told[0].back();
    }
  }
}

// Each read of a file takes 20 ms, as on another machine.
class SlowFileSystem : public io::FileSystem {
 public:
  explicit SlowFileSystem(io::FileSystem& inner) : inner_(inner) {}
  // The most reads that were in progress at once.
  int most_at_once() const { return most_; }

  absl::StatusOr<std::unique_ptr<io::RandomAccessFile>> OpenForRead(
      const std::string& path) override {
    MUSTER_ASSIGN_OR_RETURN(auto file, inner_.OpenForRead(path));
    return std::make_unique<File>(*this, std::move(file));
  }
  absl::StatusOr<std::unique_ptr<io::WritableFile>> OpenForWrite(const std::string& path) override {
    return inner_.OpenForWrite(path);
  }
  absl::StatusOr<std::unique_ptr<io::WritableFile>> OpenForAppend(
      const std::string& path) override {
    return inner_.OpenForAppend(path);
  }
  absl::StatusOr<io::FileInfo> Stat(const std::string& path) override { return inner_.Stat(path); }
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    return inner_.List(folder);
  }
  absl::Status MakeFolders(const std::string& folder) override {
    return inner_.MakeFolders(folder);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return inner_.Rename(from, to);
  }
  absl::Status Remove(const std::string& path) override { return inner_.Remove(path); }
  absl::Status RemoveAll(const std::string& folder) override { return inner_.RemoveAll(folder); }
  absl::Status SyncFolder(const std::string& folder) override { return inner_.SyncFolder(folder); }

 private:
  class File : public io::RandomAccessFile {
   public:
    File(SlowFileSystem& owner, std::unique_ptr<io::RandomAccessFile> inner)
        : owner_(owner), inner_(std::move(inner)) {}
    absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
      const int now = ++owner_.reading_;
      for (int most = owner_.most_; now > most;) {
        if (owner_.most_.compare_exchange_weak(most, now)) break;
      }
      std::this_thread::sleep_for(owner_.delay_);
      const auto count = inner_->Read(offset, size, buffer);
      --owner_.reading_;
      return count;
    }
    const std::string& path() const override { return inner_->path(); }

   private:
    SlowFileSystem& owner_;
    const std::unique_ptr<io::RandomAccessFile> inner_;
  };

  io::FileSystem& inner_;
  const std::chrono::milliseconds delay_{20};
  std::atomic<int> reading_{0}, most_{0};
};

TEST_F(ReadAheadFilesTest, SlowReadsOverlap) {
  const ReaderSpec spec = {
      .batch_size = 300, .shuffle = true, .seed = 3, .open_chunks = 3, .max_bad_records = 3};
  const Reading wanted = ReadAll(*files_, spec, 0);
  SlowFileSystem one(*files_), two(*files_);
  EXPECT_EQ(ReadAll(one, spec, 0), wanted);
  EXPECT_EQ(one.most_at_once(), 1);
  EXPECT_EQ(ReadAll(two, spec, 2), wanted);
  EXPECT_GE(two.most_at_once(), 2);
  EXPECT_LE(two.most_at_once(), 3) << "two reads ahead, and the consumer's own";
}

TEST_F(ReadAheadFilesTest, AReaderIsStoppedFromOutside) {
  Gate gate;
  const auto source = std::make_shared<OneRecordSource>(
      100, [&](size_t chunk) { return chunk == 0 ? absl::OkStatus() : gate.Pass(); });
  const auto reader = *BatchReader::Create(source, NumberSchema(), {.batch_size = 1});
  formats::Columns columns(NumberSchema());
  ASSERT_TRUE(*reader->Next(&columns));
  ASSERT_TRUE(gate.AwaitWaiting(2));
  auto waiting = std::async(std::launch::async, [&] { return reader->Next(&columns).status(); });
  reader->Stop();
  ASSERT_EQ(waiting.wait_for(kDeadline), std::future_status::ready);
  EXPECT_THAT(waiting.get().message(), HasSubstr("was stopped"));
  gate.Open();
}

TEST_F(ReadAheadFilesTest, ANumberOutOfRangeIsRefused) {
  EXPECT_THAT(ReadAll(*files_, {}, -1).end.message(), HasSubstr("chunks ahead -1"));
  EXPECT_THAT(ReadAll(*files_, {}, 1000).end.message(), HasSubstr("chunks ahead 1000"));
}

}  // namespace
}  // namespace muster::data
