#include "muster/data/part_file_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/data/source.h"
#include "muster/data/test_data.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PartFileWriterTest : public testing::Test {
 protected:
  absl::Status WriteSet(io::FileSystem& files, const PartFilesSpec& spec, int records) {
    MUSTER_ASSIGN_OR_RETURN(auto writer, PartFileWriter::Create(files, spec));
    for (int i = 0; i < records; ++i) {
      MUSTER_RETURN_IF_ERROR(writer->Write(StrCat("record ", i, std::string(500, 'x'))));
    }
    return writer->Commit();
  }
  std::vector<std::string> Names(const std::string& folder = "out") {
    return *files_->List(folder);
  }
  const std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
};

TEST_F(PartFileWriterTest, DistributesRoundRobinAndWritesIndexes) {
  for (const auto compression :
       {formats::Compression::kNone, formats::Compression::kGzip, formats::Compression::kZlib}) {
    const PartFilesSpec spec = {
        .folder = "deep/er", .files = 3, .compression = compression, .overwrite = true};
    ASSERT_TRUE(WriteSet(*files_, spec, 8).ok());
    std::vector<uint64_t> counts;
    for (int i = 0; i < 3; ++i) {
      const std::string path = io::JoinPath("deep/er", PartFileName(i, 3, compression));
      const auto scanned = ScanRecords(*files_, path, {.compression = compression});
      ASSERT_TRUE(scanned.ok()) << scanned.status();
      counts.push_back(scanned->records());
      const auto index = ParseRecordIndex(*io::ReadFile(*files_, RecordIndexPath(path)));
      ASSERT_TRUE(index.ok()) << index.status();
      EXPECT_EQ(*index, *scanned);
    }
    EXPECT_THAT(counts, ElementsAre(3, 3, 2));
    EXPECT_EQ(Names("deep/er").size(), 6u) << "there must be three files and three indexes";
  }
  EXPECT_EQ(PartFileName(4, 12, formats::Compression::kGzip), "part-00004-of-00012.tfrecord.gz");
}

TEST_F(PartFileWriterTest, NothingIsThereBeforeCommit) {
  {
    auto writer = *PartFileWriter::Create(*files_, {.folder = "out", .files = 2});
    ASSERT_TRUE(writer->Write("record").ok());
    for (const std::string& name : Names()) EXPECT_TRUE(name.starts_with('.')) << name;
  }
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(PartFileWriterTest, AnotherSetIsReplacedOnlyIfRequested) {
  ASSERT_TRUE(WriteSet(*files_, {.folder = "out", .files = 2}, 5).ok());
  WriteText(*files_, "out/part-of-the-docs.txt", "mine");
  ASSERT_TRUE(WriteSet(*files_, {.folder = "out", .files = 2}, 6).ok())
      << "files of the same names are replaced";
  const absl::Status status = WriteSet(*files_, {.folder = "out", .files = 1}, 5);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(status.message(), HasSubstr("out/part-00000-of-00002.tfrecord"));
  ASSERT_TRUE(WriteSet(*files_, {.folder = "out", .files = 1, .overwrite = true}, 5).ok());
  EXPECT_THAT(Names(), ElementsAre(".part-00000-of-00001.tfrecord.index",
                                   "part-00000-of-00001.tfrecord", "part-of-the-docs.txt"));
}

TEST_F(PartFileWriterTest, AFullDiskLeavesNothing) {
  for (uint64_t room : {0, 100, 3000, 6000}) {
    io::FaultFileSystem faulty(*files_);
    faulty.FillDiskAfter(room);
    const absl::Status status = WriteSet(faulty, {.folder = "out", .files = 2}, 12);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_THAT(Names(), IsEmpty()) << room;
  }
}

// Whichever operation fails, no file of the set is left.
TEST_F(PartFileWriterTest, AnyFailedOperationLeavesNothing) {
  using io::FileOperation;
  for (const auto operation :
       {FileOperation::kCreate, FileOperation::kWrite, FileOperation::kSync, FileOperation::kClose,
        FileOperation::kRename, FileOperation::kStat, FileOperation::kSyncFolder}) {
    bool failed = true;
    for (int n = 1; failed; ++n) {
      io::FaultFileSystem faulty(*files_);
      faulty.FailNth(operation, n, absl::InternalError("made to fail"));
      failed = !WriteSet(faulty, {.folder = "out", .files = 2}, 3).ok();
      if (failed) {
        EXPECT_THAT(Names(), IsEmpty()) << static_cast<int>(operation) << " " << n;
      }
      ASSERT_LT(n, 50);
      ASSERT_TRUE(files_->RemoveAll("out").ok());
      ASSERT_TRUE(files_->MakeFolders("out").ok());
    }
  }
}

// A process that dies leaves files that globs do not find; part files are left only if all are
// complete.
TEST_F(PartFileWriterTest, AfterACrashAllFilesAreVisibleOrIncompleteSetsAre) {
  bool crashed = true;
  for (int n = 1; crashed; ++n) {
    ASSERT_TRUE(files_->RemoveAll("out").ok());
    ASSERT_TRUE(files_->MakeFolders("out").ok());
    io::FaultFileSystem faulty(*files_);
    faulty.CrashAtChange(n);
    crashed = !WriteSet(faulty, {.folder = "out", .files = 3}, 7).ok();
    const auto found = io::Glob(*files_, "out/part-*");
    if (!found.ok()) continue;
    for (const std::string& path : *found) {
      EXPECT_TRUE(LoadOrScanRecords(*files_, path, FileRules()).ok()) << path << " after " << n;
    }
    ASSERT_LT(n, 100);
  }
}

TEST_F(PartFileWriterTest, TooManyFilesAreRefused) {
  EXPECT_FALSE(PartFileWriter::Create(*files_, {.folder = "out", .files = 0}).ok());
  EXPECT_FALSE(PartFileWriter::Create(*files_, {.folder = "out", .files = 1001}).ok());
}

}  // namespace
}  // namespace muster::data
