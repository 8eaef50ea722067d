#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/test_size.h"
#include "muster/data/file_rules.h"
#include "muster/data/memory_log.h"
#include "muster/data/source.h"
#include "muster/data/source_set.h"
#include "muster/data/test_data.h"
#include "muster/formats/sniff.h"
#include "muster/io/fault_file_system.h"

namespace muster::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OpenSourceTest : public testing::Test {
 protected:
  absl::Status Fails(std::vector<std::string> patterns, Shard shard = {}) {
    return OpenSource(*files_, {.patterns = std::move(patterns), .shard = shard}).status();
  }
  static absl::StatusOr<std::shared_ptr<const Chunk>> ReadAndCount(const RecordSource& source) {
    MUSTER_ASSIGN_OR_RETURN(auto chunk, source.Read(0));
    MUSTER_RETURN_IF_ERROR(source.CountBad(0, *chunk));
    return chunk;
  }
  const std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
};

TEST_F(OpenSourceTest, ReportsWhatItCannotOpen) {
  ASSERT_TRUE(files_->MakeFolders("data").ok());
  WriteText(*files_, "data/a.csv", "x\n1\n");
  WriteTfRecords(*files_, "data/b.tfrecord", {"r"});
  WriteText(*files_, "data/c.csv", "y\n1\n");
  EXPECT_EQ(Fails({"data/z*"}).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Fails({"data/z*"}).message(), HasSubstr("data/z*"));
  EXPECT_THAT(Fails({"data"}).message(), HasSubstr("data: is a folder"));
  EXPECT_THAT(Fails({"data/a.csv", "data/b*"}).message(),
              HasSubstr("data/a.csv is CSV, but data/b.tfrecord is TFRecord"));
  EXPECT_THAT(
      Fails({"data/*.csv"}).message(),
      HasSubstr("data/c.csv: its header differs from that of data/a.csv: column 'x' is missing; "
                "column 'y' is additional"));
  EXPECT_THAT(Fails({"data/a.csv"}, {2, 2}).message(), HasSubstr("shard 2 of 2"));
  EXPECT_THAT(Fails({}).message(), HasSubstr("no input files"));
}

// Spark gives JSON lines this name.
TEST_F(OpenSourceTest, JsonLinesMayEndInJson) {
  WriteText(*files_, "part-0.json", "{\"x\":1}\n{\"x\":2}\n");
  const auto source = OpenSource(*files_, {.patterns = {"part-*.json"}});
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->records(), 2u);
  EXPECT_EQ((*(*source)->Read(0))->Where(1), "part-0.json:2");
  EXPECT_EQ(formats::GetNamedFormat("part-1.json.gz"), FileFormat::kJsonLines);
}

TEST_F(OpenSourceTest, CsvRecordsAreNamedByLine) {
  WriteText(*files_, "a.csv", "x,y\n1,\"two\nlines\"\n\n3,4\n");
  const auto source = *OpenSource(*files_, {.patterns = {"a.csv"}});
  const auto chunk = *source->Read(0);
  EXPECT_EQ(chunk->Where(0), "a.csv:2");
  EXPECT_EQ(chunk->Where(1), "a.csv:5");
}

TEST_F(OpenSourceTest, TfRecordsAreNamedByByte) {
  WriteTfRecords(*files_, "a.tfrecord", {"one", "three"});
  const auto source = *OpenSource(*files_, {.patterns = {"a.tfrecord"}});
  EXPECT_EQ((*source->Read(0))->Where(1), "a.tfrecord: record at byte 19");
}

TEST_F(OpenSourceTest, RecordsOfALogAreNamedByOffset) {
  const auto log = std::make_shared<MemoryLog>();
  log->Append("clicks/3", "one");
  log->Skip("clicks/3", 40);
  log->Append("clicks/3", "two");
  const SourceSpec spec = {.patterns = {"log://clicks/3"}, .schemes = {{"log", log}}};
  const auto chunk = *(*OpenSource(*files_, spec))->Read(0);
  EXPECT_EQ(chunk->records.size(), 2u);
  EXPECT_EQ(chunk->Where(0), "clicks/3: offset 0");
  EXPECT_EQ(chunk->Where(1), "clicks/3: offset 41");
}

TEST_F(OpenSourceTest, TheTableSaysWhichSchemesAreNoFiles) {
  const auto log = std::make_shared<MemoryLog>();
  log->Append("clicks/3", "one");
  WriteTfRecords(*files_, "a.tfrecord", {"one"});
  const SourceSchemes schemes = {{"log", log}};
  const SourceSpec mixed = {.patterns = {"log://clicks", "a.tfrecord"}, .schemes = schemes};
  EXPECT_THAT(OpenSource(*files_, mixed).status().message(),
              HasSubstr("cannot be mixed: log://clicks and a.tfrecord"));
  EXPECT_TRUE(OpenSource(*files_, {.patterns = {"a.tfrecord"}, .schemes = schemes}).ok());
  EXPECT_TRUE(absl::IsNotFound(Fails({"log://clicks"})))
      << "it is a file if its scheme is not in the table";
}

TEST_F(OpenSourceTest, BadRecordsAreLeftOutAndCountedOnce) {
  for (const auto compression : {formats::Compression::kNone, formats::Compression::kGzip}) {
    WriteTfRecords(*files_, "a.tfrecord", {"one", "two", "three", "four"}, compression,
                   [](std::string* frames) {
                     (*frames)[12] ^= 1;
                     (*frames)[2 * 19 + 12] ^= 1;
                   });
    const SourceSpec spec = {.patterns = {"a.tfrecord"}};
    const auto strict = *OpenSource(*files_, spec);
    EXPECT_EQ(ReadAndCount(*strict).status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(ReadAndCount(*strict).status().message(),
                HasSubstr("a.tfrecord: record at byte 0"));
    std::vector<BadRecord> left_out;
    SourceSpec told = spec;
    told.take_bad_record = [&](BadRecord record) { left_out.push_back(std::move(record)); };
    const auto tolerant = *OpenSource(*files_, told, 2);
    for (int i = 0; i < 3; ++i) {
      const auto chunk = ReadAndCount(*tolerant);
      ASSERT_TRUE(chunk.ok()) << chunk.status();
      EXPECT_THAT((*chunk)->records, ElementsAre("two", "four"));
      EXPECT_EQ((*chunk)->Number(0), 1u);
      EXPECT_EQ((*chunk)->Number(1), 3u);
    }
    EXPECT_EQ(tolerant->bad_records(), 2u);
    ASSERT_EQ(left_out.size(), 2u);
    EXPECT_EQ(left_out[1].number, 2u);
    EXPECT_EQ(left_out[1].where, "a.tfrecord: record at byte 38");
    EXPECT_EQ(left_out[1].bytes.size(), 5u);
    EXPECT_EQ(left_out[1].why.code(), absl::StatusCode::kDataLoss);
    EXPECT_FALSE(ReadAndCount(**OpenSource(*files_, spec, 1)).ok());
  }
}

TEST_F(OpenSourceTest, CutFilesFailWhenOpened) {
  WriteTfRecords(*files_, "a.tfrecord", {"one", "two"}, formats::Compression::kNone,
                 [](std::string* frames) { frames->pop_back(); });
  const absl::Status status = Fails({"a.tfrecord"});
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("a.tfrecord: record at byte 19"));
}

TEST_F(OpenSourceTest, AFileThatShrankIsNoticed) {
  WriteTfRecords(*files_, "a.tfrecord", {"one", "two"});
  const auto source = *OpenSource(*files_, {.patterns = {"a.tfrecord"}});
  WriteTfRecords(*files_, "a.tfrecord", {"one"});
  EXPECT_THAT(source->Read(0).status().message(), HasSubstr("must not change"));
}

TEST_F(OpenSourceTest, FilesStayOpenBetweenChunks) {
  std::vector<std::string> records(3000, std::string(1000, 'x'));
  WriteTfRecords(*files_, "a.tfrecord", records);
  io::FaultFileSystem counting(*files_);
  const auto source = *OpenSource(counting, {.patterns = {"a.tfrecord"}});
  const int64_t before = counting.count(io::FileOperation::kOpen);
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < source->chunks().size(); ++i) ASSERT_TRUE(source->Read(i).ok());
  }
  EXPECT_EQ(counting.count(io::FileOperation::kOpen), before + 1);
}

}  // namespace
}  // namespace muster::data
