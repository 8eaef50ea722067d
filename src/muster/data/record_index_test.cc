#include "muster/data/record_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/data/test_data.h"
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
  // An index that differs from what a scan finds, so that it is seen whether it was used.
  RecordIndex Other() {
    RecordIndex index = *ScanRecords(*files_, "a.csv");
    index.chunks[0].records = 2;
    return index;
  }
  uint64_t Records(formats::CsvOptions csv = {}) {
    const auto index = LoadOrScanRecords(*files_, "a.csv", csv);
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
  EXPECT_EQ(Records({';'}), 3u) << "another delimiter";
  RecordIndex other = Other();
  ++other.file_size;
  ASSERT_TRUE(WriteRecordIndex(*files_, "a.csv", other).ok());
  EXPECT_EQ(Records(), 3u) << "another size";
  other = Other();
  other.format = FileFormat::kTfRecord;
  ASSERT_TRUE(WriteRecordIndex(*files_, "a.csv", other).ok());
  EXPECT_EQ(Records(), 3u) << "another format";
  WriteText(*files_, ".a.csv.index", "garbage");
  EXPECT_EQ(Records(), 3u) << "broken";
}

TEST_F(LoadOrScanTest, AnIndexOlderThanTheFileIsIgnored) {
  ASSERT_TRUE(WriteRecordIndex(*files_, "a.csv", Other()).ok());
  WriteText(*files_, "a.csv", "x\n4\n5\n6\n");
  EXPECT_EQ(Records(), 3u);
}

}  // namespace
}  // namespace muster::data
