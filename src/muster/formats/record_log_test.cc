#include "muster/formats/record_log.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::formats {
namespace {

using io::FileOperation;
using ::testing::HasSubstr;

constexpr char kLogPath[] = "study/trials";

// Records of 30 to 40 bytes, for groups of three.
Json TrialRecord(int trial) { return {{"trial", trial}, {"loss", 0.5 / (1 + trial)}}; }
std::vector<Json> TrialRecords(int first, int count) {
  std::vector<Json> records;
  for (int i = 0; i < count; ++i) records.push_back(TrialRecord(first + i));
  return records;
}

class RecordLogTest : public ::testing::Test {
 protected:
  RecordLogTest() { EXPECT_TRUE(memory_->MakeFolders("study").ok()); }

  // Writes a log of groups of three records.
  void WriteGroups(int groups) {
    RecordLog log(files_, kLogPath, {});
    for (int group = 0; group < groups; ++group) {
      ASSERT_TRUE(log.Append(TrialRecords(3 * group, 3)).ok());
    }
  }
  std::string Bytes() { return *io::ReadFile(*memory_, kLogPath); }
  void SetBytes(const std::string& bytes) {
    ASSERT_TRUE(io::WriteFileAtomically(*memory_, kLogPath, bytes).ok());
  }
  RecordLogContents Read() {
    auto read = ReadRecordLog(files_, kLogPath);
    EXPECT_TRUE(read.ok()) << read.status();
    return read.ok() ? *std::move(read) : RecordLogContents();
  }

  std::unique_ptr<io::FileSystem> memory_ = io::NewMemoryFileSystem();
  io::FaultFileSystem files_{*memory_};
};

TEST_F(RecordLogTest, RecordsAreReadBackInTheirOrder) {
  WriteGroups(2);
  const RecordLogContents read = Read();
  EXPECT_EQ(read.records, TrialRecords(0, 6));
  EXPECT_EQ(read.bytes, Bytes().size());
  EXPECT_FALSE(read.torn);
}

TEST_F(RecordLogTest, AGroupIsOneWriteAndOneSyncOfItsOwnBytes) {
  RecordLog log(files_, kLogPath, {});
  ASSERT_TRUE(log.Append(TrialRecords(0, 8)).ok());
  const int64_t writes = files_.count(FileOperation::kWrite);
  const int64_t syncs = files_.count(FileOperation::kSync);
  const int64_t changes = files_.changes();
  const uint64_t before = Bytes().size();
  ASSERT_TRUE(log.Append(TrialRecords(0, 8)).ok());
  EXPECT_EQ(files_.count(FileOperation::kWrite), writes + 1);
  EXPECT_EQ(files_.count(FileOperation::kSync), syncs + 1);
  EXPECT_EQ(files_.changes(), changes + 2);
  EXPECT_EQ(Bytes().size(), 2 * before);
}

TEST_F(RecordLogTest, ALogThatWasReadIsContinuedWithoutWritingItAnew) {
  WriteGroups(2);
  const RecordLogContents read = Read();
  RecordLog log(files_, kLogPath, read);
  const int64_t renames = files_.count(FileOperation::kRename);
  ASSERT_TRUE(log.Append(TrialRecords(6, 3)).ok());
  EXPECT_EQ(files_.count(FileOperation::kRename), renames);
  EXPECT_EQ(Read().records, TrialRecords(0, 9));
}

TEST_F(RecordLogTest, EveryCutOfTheLastGroupKeepsTheRecordsBeforeIt) {
  WriteGroups(1);
  const size_t before = Bytes().size();
  WriteGroups(2);
  const std::string whole = Bytes();
  for (size_t size = before; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    const auto read = ParseRecordLog(cut, kLogPath);
    ASSERT_TRUE(read.ok()) << size << ": " << read.status();
    ASSERT_GE(read->records.size(), 3u) << size;
    EXPECT_EQ(read->records, TrialRecords(0, static_cast<int>(read->records.size()))) << size;
    EXPECT_EQ(read->torn, cut.back() != '\n') << size;
  }
}

// Any blocks of the last group that never reached the disk read as zeros.
TEST_F(RecordLogTest, ZerosInTheLastGroupAreATornEnd) {
  WriteGroups(1);
  const size_t before = Bytes().size();
  WriteGroups(2);
  const std::string whole = Bytes();
  for (size_t at = before; at < whole.size(); ++at) {
    for (const size_t size : {size_t{1}, size_t{40}, whole.size()}) {
      std::string torn = whole;
      for (size_t i = at; i < std::min(at + size, whole.size()); ++i) torn[i] = '\0';
      const auto read = ParseRecordLog(torn, kLogPath);
      ASSERT_TRUE(read.ok()) << at << ", " << size << ": " << read.status();
      EXPECT_TRUE(read->torn);
      ASSERT_GE(read->records.size(), 3u);
      EXPECT_EQ(read->records, TrialRecords(0, static_cast<int>(read->records.size())));
    }
  }
}

TEST_F(RecordLogTest, DamageBeforeTheLastGroupIsReportedWithItsByte) {
  WriteGroups(2);
  const size_t before = Bytes().size();
  WriteGroups(3);
  const std::string whole = Bytes();
  size_t line = 0;
  for (size_t at = 0; at < before; ++at) {
    for (const char wrong : {static_cast<char>(whole[at] ^ 1), '\0'}) {
      // A zero there hides the mark of the next group.
      if (wrong == '\0' && at + 1 == before) continue;
      std::string damaged = whole;
      damaged[at] = wrong;
      const auto read = ParseRecordLog(damaged, kLogPath);
      ASSERT_FALSE(read.ok()) << at;
      EXPECT_TRUE(absl::IsDataLoss(read.status()));
      EXPECT_THAT(std::string(read.status().message()),
                  HasSubstr(StrCat("(from byte ", line, ") ")));
    }
    if (whole[at] == '\n') line = at + 1;
  }
}

TEST_F(RecordLogTest, ATornEndIsCutBeforeTheLogIsContinued) {
  WriteGroups(2);
  const std::string whole = Bytes();
  SetBytes(whole.substr(0, whole.size() - 3));
  const RecordLogContents read = Read();
  EXPECT_TRUE(read.torn);
  ASSERT_EQ(read.records.size(), 5u);
  EXPECT_EQ(Bytes().size(), whole.size() - 3) << "reading must not write";
  RecordLog log(files_, kLogPath, read);
  ASSERT_TRUE(log.Append(TrialRecords(5, 3)).ok());
  EXPECT_EQ(Read().records, TrialRecords(0, 8));
}

TEST_F(RecordLogTest, AGroupThatFailedIsRemovedByTheNext) {
  for (const bool is_short_write : {true, false}) {
    SCOPED_TRACE(is_short_write);
    RecordLog log(files_, kLogPath, {});
    ASSERT_TRUE(log.Append(TrialRecords(0, 3)).ok());
    const absl::Status full = absl::ResourceExhaustedError("disk full");
    if (is_short_write) {
      files_.ShortWriteNth(1, full);
    } else {
      files_.FailNth(FileOperation::kSync, 1, full);
    }
    EXPECT_TRUE(absl::IsResourceExhausted(log.Append(TrialRecords(100, 3))));
    ASSERT_TRUE(log.Append(TrialRecords(3, 3)).ok());
    EXPECT_EQ(Read().records, TrialRecords(0, 6));
  }
}

TEST_F(RecordLogTest, ACrashAtAnyChangeKeepsWhatWasAcknowledged) {
  for (int64_t crash = 1; crash < 20; ++crash) {
    const auto memory = io::NewMemoryFileSystem();
    ASSERT_TRUE(memory->MakeFolders("study").ok());
    io::FaultFileSystem files(*memory);
    files.CrashAtChange(crash);
    int kept = 0;
    {
      RecordLog log(files, kLogPath, {});
      while (kept < 9 && log.Append(TrialRecords(kept, 3)).ok()) kept += 3;
    }
    const auto read = ReadRecordLog(*memory, kLogPath);
    if (absl::IsNotFound(read.status()) && kept == 0) continue;
    ASSERT_TRUE(read.ok()) << crash << ": " << read.status();
    const auto found = static_cast<int>(read->records.size());
    EXPECT_GE(found, kept) << crash;
    EXPECT_EQ(read->records, TrialRecords(0, found)) << crash;
  }
}

TEST_F(RecordLogTest, ReplacedRecordsAreTheOnlyOnes) {
  WriteGroups(3);
  RecordLog log(files_, kLogPath, Read());
  ASSERT_TRUE(log.Replace(TrialRecords(7, 2)).ok());
  ASSERT_TRUE(log.Append(TrialRecords(9, 1)).ok());
  EXPECT_EQ(Read().records, TrialRecords(7, 3));
}

TEST_F(RecordLogTest, RecordsThatCouldNotBeReadBackAreNotWritten) {
  RecordLog log(files_, kLogPath, {});
  Json deep = Json::object();
  for (int i = 0; i < 32; ++i) deep = {{"in", deep}};
  for (const Json& bad : {Json(7), deep}) {
    EXPECT_TRUE(absl::IsInvalidArgument(log.Append(std::vector<Json>{TrialRecord(0), bad})));
  }
  EXPECT_FALSE(files_.Stat(kLogPath).ok());
  ASSERT_TRUE(log.Append({}).ok());
  EXPECT_FALSE(files_.Stat(kLogPath).ok());
}

TEST_F(RecordLogTest, AFileThatAnotherProgramHasShortenedIsNotContinued) {
  WriteGroups(2);
  const std::string whole = Bytes();
  SetBytes(whole + "00");
  RecordLog log(files_, kLogPath, Read());
  SetBytes(whole.substr(0, 10));
  const absl::Status status = log.Append(TrialRecords(6, 1));
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(Bytes(), whole.substr(0, 10));
}

}  // namespace
}  // namespace muster::formats
