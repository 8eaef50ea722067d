// Readers of files give the same results however many chunks are read ahead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "muster/base/test_size.h"
#include "muster/data/reader.h"
#include "muster/data/test_data.h"
#include "muster/formats/csv.h"
#include "muster/formats/example.h"
#include "muster/formats/tfrecord.h"
#include "muster/io/memory_file_system.h"

namespace muster::data {
namespace {

using ::testing::HasSubstr;

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

TEST_F(ReadAheadFilesTest, ANumberOutOfRangeIsRefused) {
  EXPECT_THAT(ReadAll(*files_, {}, -1).end.message(), HasSubstr("chunks ahead -1"));
  EXPECT_THAT(ReadAll(*files_, {}, 1000).end.message(), HasSubstr("chunks ahead 1000"));
}

}  // namespace
}  // namespace muster::data
