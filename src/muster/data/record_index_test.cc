#include "muster/data/record_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "muster/data/test_data.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::data {
namespace {

using ::testing::HasSubstr;

RecordIndex SampleIndex() {
  RecordIndex index;
  index.format = FileFormat::kCsv;
  index.delimiter = ';';
  index.file_size = 1000;
  index.end = 5000;
  index.chunks = {{.begin = 10, .records = 4, .line = 2}, {.begin = 900, .records = 7, .line = 9}};
  return index;
}

TEST(RecordIndexTest, WhatIsWrittenIsRead) {
  const auto parsed = ParseRecordIndex(SerializeRecordIndex(SampleIndex()));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, SampleIndex());
  EXPECT_EQ(parsed->records(), 11u);
}

TEST(RecordIndexTest, AnyChangedByteAndAnyCutIsNoticed) {
  const std::string bytes = SerializeRecordIndex(SampleIndex());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] ^= 4;
    EXPECT_EQ(ParseRecordIndex(changed).status().code(), absl::StatusCode::kDataLoss) << i;
    EXPECT_FALSE(ParseRecordIndex(bytes.substr(0, i)).ok()) << i;
  }
  EXPECT_FALSE(ParseRecordIndex(bytes + "x").ok());
}

TEST(RecordIndexTest, ChunksMustBeInOrderAndInTheFile) {
  const auto message = [](auto&& change) {
    RecordIndex index = SampleIndex();
    change(&index);
    return std::string(ParseRecordIndex(SerializeRecordIndex(index)).status().message());
  };
  EXPECT_THAT(message([](auto* index) { index->chunks[1].begin = 10; }), HasSubstr("order"));
  EXPECT_THAT(message([](auto* index) { index->chunks[1].begin = 5000; }), HasSubstr("order"));
  EXPECT_THAT(message([](auto* index) { index->chunks[0].records = 0; }), HasSubstr("count"));
  EXPECT_THAT(message([](auto* index) { index->chunks[0].records = ~0ull; }), HasSubstr("count"));
}

TEST(RecordIndexTest, ItsFileIsHidden) {
  EXPECT_EQ(RecordIndexPath("a/b/part-0.tfrecord"), "a/b/.part-0.tfrecord.index");
  EXPECT_EQ(RecordIndexPath("part-0"), ".part-0.index");
  EXPECT_EQ(RecordIndexPath("/x"), "/.x.index");
}

class LoadOrScanTest : public testing::Test {
 protected:
  void SetUp() override { WriteText(*files_, "a.csv", "x\n1\n2\n3\n"); }
  // Returns an index that differs from what a scan finds, so that a test sees whether it was used.
  RecordIndex Other() {
    RecordIndex index = *ScanRecords(*files_, "a.csv", {.format = FileFormat::kCsv});
    index.chunks[0].records = 2;
    return index;
  }
  uint64_t Records(formats::CsvOptions csv = {}) {
    const auto index =
        LoadOrScanRecords(*files_, "a.csv", {.format = FileFormat::kCsv, .csv = csv});
    EXPECT_TRUE(index.ok()) << index.status();
    return index.ok() ? index->records() : 0;
  }
  const std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
};

TEST_F(LoadOrScanTest, AnIndexThatFitsIsUsed) {
  EXPECT_EQ(Records(), 3u);
  ASSERT_TRUE(WriteRecordIndex(*files_, "a.csv", Other()).ok());
  EXPECT_EQ(Records(), 2u);
}

TEST_F(LoadOrScanTest, AnIndexThatDoesNotFitIsIgnored) {
  ASSERT_TRUE(WriteRecordIndex(*files_, "a.csv", Other()).ok());
  EXPECT_EQ(Records({';'}), 3u) << "the delimiter differs";
  EXPECT_EQ(Records({.quote = '\0'}), 3u) << "the quotes differ";
  EXPECT_EQ(Records({.header = false}), 4u) << "there is no header";
  RecordIndex other = Other();
  ++other.file_size;
  ASSERT_TRUE(WriteRecordIndex(*files_, "a.csv", other).ok());
  EXPECT_EQ(Records(), 3u) << "the size differs";
  other = Other();
  other.format = FileFormat::kTfRecord;
  ASSERT_TRUE(WriteRecordIndex(*files_, "a.csv", other).ok());
  EXPECT_EQ(Records(), 3u) << "the format differs";
  WriteText(*files_, ".a.csv.index", "garbage");
  EXPECT_EQ(Records(), 3u) << "broken";
}

// Files that are large enough for an index.
class IndexOnceTest : public testing::Test {
 protected:
  void SetUp() override {
    WriteTfRecords(*files_, "a", std::vector<std::string>(3000, std::string(1000, 'r')));
  }
  // Returns how many reads of files it takes to open the index.
  int64_t ReadsToOpen(io::FaultFileSystem& files) {
    const int64_t before = files.count(io::FileOperation::kRead);
    const auto index = LoadOrScanRecords(files, "a", FileRules());
    EXPECT_TRUE(index.ok()) << index.status();
    if (index.ok()) {
      EXPECT_EQ(*index, *ScanRecords(*files_, "a", FileRules()));
    }
    return files.count(io::FileOperation::kRead) - before;
  }
  std::vector<std::string> Names() { return *files_->List(""); }
  const std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
};

TEST_F(IndexOnceTest, TheFirstOpenerWritesTheIndex) {
  io::FaultFileSystem counted(*files_);
  EXPECT_GT(ReadsToOpen(counted), 1);
  EXPECT_THAT(Names(), testing::ElementsAre(".a.index", "a"));
  EXPECT_EQ(ReadsToOpen(counted), 1) << "only the index must be read";
}

TEST_F(IndexOnceTest, WhereWritingIsNotAllowedEachOpenerScans) {
  io::FaultFileSystem counted(*files_);
  for (int opener = 0; opener < 2; ++opener) {
    counted.FailNth(io::FileOperation::kCreate, 1, absl::PermissionDeniedError("read-only"));
    EXPECT_GT(ReadsToOpen(counted), 1);
  }
  counted.FailNth(io::FileOperation::kRename, 1, absl::UnavailableError("away"));
  EXPECT_GT(ReadsToOpen(counted), 1);
  EXPECT_THAT(Names(), testing::ElementsAre("a")) << "nothing must be left half written";
}

TEST_F(IndexOnceTest, AFileThatChangesDuringItsScanGetsNoIndex) {
  io::FaultFileSystem changing(*files_);
  changing.StallNth(io::FileOperation::kRead, 2, [&] {
    WriteTfRecords(*files_, "a", std::vector<std::string>(3000, std::string(1000, 's')));
  });
  EXPECT_TRUE(LoadOrScanRecords(changing, "a", FileRules()).ok());
  EXPECT_THAT(Names(), testing::ElementsAre("a"));
}

TEST_F(IndexOnceTest, ASmallFileGetsNoIndex) {
  WriteTfRecords(*files_, "a", {"one", "two"});
  io::FaultFileSystem counted(*files_);
  ReadsToOpen(counted);
  EXPECT_THAT(Names(), testing::ElementsAre("a"));
}

TEST_F(IndexOnceTest, SeveralOpenersAtOnceLeaveOneIndex) {
  {
    std::vector<std::jthread> openers;
    for (int i = 0; i < 4; ++i) {
      openers.emplace_back([&] { EXPECT_TRUE(LoadOrScanRecords(*files_, "a", FileRules()).ok()); });
    }
  }
  EXPECT_THAT(Names(), testing::ElementsAre(".a.index", "a"));
  io::FaultFileSystem counted(*files_);
  EXPECT_EQ(ReadsToOpen(counted), 1);
}

TEST_F(LoadOrScanTest, AnIndexOlderThanTheFileIsIgnored) {
  ASSERT_TRUE(WriteRecordIndex(*files_, "a.csv", Other()).ok());
  WriteText(*files_, "a.csv", "x\n4\n5\n6\n");
  EXPECT_EQ(Records(), 3u);
}

}  // namespace
}  // namespace muster::data
