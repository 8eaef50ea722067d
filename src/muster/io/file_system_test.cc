#include "muster/io/file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "muster/io/fault_file_system.h"
#include "muster/io/glob_match.h"
#include "muster/io/memory_file_system.h"
#include "muster/io/path_scheme.h"

namespace muster::io {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(PathTest, Join) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("/", "b"), "/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(JoinPath("a", "/b"), "/b");
  EXPECT_EQ(JoinPath("a", "hdfs://host/b"), "hdfs://host/b");
  EXPECT_EQ(JoinPath("hdfs://host", "b"), "hdfs://host/b");
}

TEST(PathTest, DirnameAndBasename) {
  EXPECT_EQ(Dirname("a/b/c"), "a/b");
  EXPECT_EQ(Dirname("c"), ".");
  EXPECT_EQ(Dirname("/c"), "/");
  EXPECT_EQ(Dirname("hdfs://host/b/c"), "hdfs://host/b");
  EXPECT_EQ(Dirname("hdfs://host/c"), "hdfs://host/");
  EXPECT_EQ(Dirname("hdfs://host"), "hdfs://host");
  EXPECT_EQ(Dirname("file:///c"), "file:///");
  EXPECT_EQ(Basename("a/b/c"), "c");
  EXPECT_EQ(Basename("c"), "c");
  EXPECT_EQ(Basename("/c"), "c");
}

TEST(PathTest, TemporaryIsHiddenInTheSameFolder) {
  EXPECT_TRUE(TemporaryPath("a/b").starts_with(StrCat("a/.b.tmp-", getpid(), "-")));
  EXPECT_TRUE(TemporaryPath("b").starts_with(StrCat(".b.tmp-", getpid(), "-")));
  EXPECT_EQ(TemporaryPath("b"), TemporaryPath("b"));
  EXPECT_TRUE(NewTemporaryPath("a/b").starts_with(TemporaryPath("a/b")));
  EXPECT_NE(NewTemporaryPath("b"), NewTemporaryPath("b"));
  EXPECT_TRUE(IsTemporaryName(TemporaryPath("b")));
  EXPECT_FALSE(IsTemporaryName("b.tmp-1"));
  EXPECT_FALSE(IsTemporaryName(".b"));
}

TEST(RemoveTemporariesTest, RemovesThoseOfAllProcessesButOfNoOtherFile) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  ASSERT_TRUE(files->MakeFolders("a").ok());
  const std::vector<std::string> kept = {".b", ".b2.tmp-1-0", "b", "b.tmp-1-0"};
  for (const std::string& name : kept) {
    ASSERT_TRUE(WriteFileAtomically(*files, JoinPath("a", name), "x").ok());
  }
  for (const std::string& path : {TemporaryPath("a/b"), std::string("a/.b.tmp-7-0123abcd")}) {
    ASSERT_TRUE(WriteFileAtomically(*files, path, "half").ok());
  }
  RemoveTemporaries(*files, "a/b");
  EXPECT_EQ(*files->List("a"), kept);
  RemoveTemporaries(*files, "no such folder/b");  // has nothing to do
}

TEST(ReadFileTest, RefusesALargeFileBeforeReadingIt) {
  const std::unique_ptr<FileSystem> memory = NewMemoryFileSystem();
  FaultFileSystem files(*memory);
  ASSERT_TRUE(WriteFileAtomically(files, "f", "0123456789").ok());
  EXPECT_EQ(ReadFile(files, "f", 10).value(), "0123456789");
  const int64_t reads = files.count(FileOperation::kRead);
  const absl::Status status = ReadFile(files, "f", 9).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("read f: it has 10 bytes"));
  EXPECT_EQ(files.count(FileOperation::kRead), reads);
}

TEST(FaultFileSystemTest, AnOperationThatStallsHoldsUpNoOther) {
  const std::unique_ptr<FileSystem> memory = NewMemoryFileSystem();
  FaultFileSystem files(*memory);
  int stalls = 0;
  files.StallNth(FileOperation::kRename, 2, [&] {
    ++stalls;
    EXPECT_TRUE(files.Stat("a").ok()) << "what came before it is there";
    EXPECT_FALSE(files.Stat("b").ok()) << "it is not done yet";
  });
  ASSERT_TRUE(WriteFileAtomically(files, "a", "1").ok());
  EXPECT_EQ(stalls, 0);
  ASSERT_TRUE(WriteFileAtomically(files, "b", "2").ok());
  EXPECT_EQ(stalls, 1);
  EXPECT_EQ(ReadFile(files, "b").value(), "2");
}

TEST(WriteFileAtomicallyTest, SyncsBeforeTheRenameAndTheFolderAfterIt) {
  const std::unique_ptr<FileSystem> memory = NewMemoryFileSystem();
  FaultFileSystem files(*memory);
  ASSERT_TRUE(files.MakeFolders("d").ok());
  ASSERT_TRUE(WriteFileAtomically(files, "d/f", "text").ok());
  const std::string temporary = TemporaryPath("d/f");
  using Event = FaultFileSystem::Event;
  EXPECT_THAT(
      files.history(),
      ElementsAre(Event{FileOperation::kMakeFolders, "d"}, Event{FileOperation::kCreate, temporary},
                  Event{FileOperation::kWrite, temporary}, Event{FileOperation::kSync, temporary},
                  Event{FileOperation::kClose, temporary}, Event{FileOperation::kRename, "d/f"},
                  Event{FileOperation::kSyncFolder, "d"}));
}

TEST(WriteFileAtomicallyTest, AFailureLeavesTheOldFileAndNothingElse) {
  for (const FileOperation operation :
       {FileOperation::kCreate, FileOperation::kWrite, FileOperation::kSync, FileOperation::kClose,
        FileOperation::kRename}) {
    const std::unique_ptr<FileSystem> memory = NewMemoryFileSystem();
    FaultFileSystem files(*memory);
    ASSERT_TRUE(WriteFileAtomically(files, "f", "old").ok());
    files.FailNth(operation, 1, absl::ResourceExhaustedError("full"));
    const absl::Status status = WriteFileAtomically(files, "f", "new");
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_EQ(ReadFile(*memory, "f").value(), "old");
    EXPECT_THAT(memory->List("/").value(), ElementsAre("f"));
  }
}

TEST(WriteFileAtomicallyTest, ACrashAnywhereLeavesTheOldOrTheNew) {
  const std::string old_text = "old", new_text(1000, 'n');
  const auto crash_at = [&](int64_t change) {
    const std::unique_ptr<FileSystem> memory = NewMemoryFileSystem();
    FaultFileSystem files(*memory);
    EXPECT_TRUE(WriteFileAtomically(files, "f", old_text).ok());
    files.CrashAtChange(change);
    const bool done = WriteFileAtomically(files, "f", new_text).ok();
    const std::string found = ReadFile(*memory, "f").value();
    EXPECT_TRUE(found == old_text || found == new_text) << "crash at change " << change;
    if (done) {
      EXPECT_EQ(found, new_text);
    }
    return done;
  };
  int64_t change = 1;
  while (!crash_at(change)) ++change;
  EXPECT_EQ(change, 7) << "create, write, sync, close, rename, sync the folder";
}

TEST(FaultFileSystemTest, AShortWriteAndAFullDiskLeaveAPart) {
  const std::unique_ptr<FileSystem> memory = NewMemoryFileSystem();
  FaultFileSystem files(*memory);
  auto file = files.OpenForWrite("f").value();
  files.ShortWriteNth(2, absl::UnavailableError("torn"));
  EXPECT_TRUE(file->Append("01234567").ok());
  EXPECT_TRUE(absl::IsUnavailable(file->Append("89abcdef")));
  EXPECT_TRUE(absl::IsUnavailable(file->Append("x"))) << "a failed file stays failed";
  EXPECT_TRUE(absl::IsUnavailable(file->Close()));
  EXPECT_EQ(ReadFile(*memory, "f").value(), "0123456789ab");

  files.FillDiskAfter(10);
  file = files.OpenForWrite("g").value();
  EXPECT_TRUE(file->Append("01234567").ok());
  const absl::Status full = file->Append("89abcdef");
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(std::string(full.message()), HasSubstr("write g"));
  EXPECT_EQ(ReadFile(*memory, "g").value(), "0123456789");
}

TEST(FaultFileSystemTest, AfterACrashNothingWorksAndBuffersAreLost) {
  const std::unique_ptr<FileSystem> memory = NewMemoryFileSystem();
  FaultFileSystem files(*memory);
  auto file = files.OpenForWrite("f").value();
  ASSERT_TRUE(file->Append("flushed").ok());
  ASSERT_TRUE(file->Flush().ok());
  ASSERT_TRUE(file->Append("buffered").ok());
  files.CrashAtChange(1);
  EXPECT_TRUE(files.Stat("f").ok()) << "reading changes nothing";
  EXPECT_TRUE(absl::IsUnavailable(files.Remove("f")));
  EXPECT_TRUE(absl::IsUnavailable(file->Close()));
  EXPECT_TRUE(absl::IsUnavailable(files.Stat("f").status()));
  file.reset();
  EXPECT_EQ(ReadFile(*memory, "f").value(), "flushed");
}

TEST(PathTest, OnlyAWholeSchemeIsOne) {
  EXPECT_EQ(PathScheme("hdfs://host/m"), "hdfs");
  EXPECT_EQ(PathScheme("s3a+x.1-b://"), "s3a+x.1-b");
  EXPECT_EQ(PathScheme("./hdfs://host/m"), "");
  EXPECT_EQ(PathScheme("://host"), "");
  EXPECT_EQ(PathScheme("1a://host"), "");
  EXPECT_EQ(PathScheme("c:/windows"), "");
  EXPECT_EQ(LocalPath("data/a b").value(), "data/a b");
  EXPECT_EQ(LocalPath("file:///data/a b").value(), "/data/a b");
  EXPECT_EQ(LocalPath("file://localhost/data").value(), "/data");
  EXPECT_EQ(LocalPath("file://").value(), "/");
  EXPECT_TRUE(absl::IsInvalidArgument(LocalPath("file://other/data").status()));
}

TEST(PathTest, TheAuthorityIsBetweenTheSchemeAndThePath) {
  EXPECT_EQ(PathAuthority("hdfs://nn:8020/a/b"), "nn:8020");
  EXPECT_EQ(PathAuthority("hdfs://nn"), "nn");
  EXPECT_EQ(PathAuthority("hdfs:///a"), "") << "the default one";
  EXPECT_EQ(PathAuthority("/a//b"), "");
  EXPECT_EQ(PathAuthority("a://"), "");
}

TEST(PathTest, HadoopsSchemesNeedOneSlashOnly) {
  for (const char* const scheme : {"hdfs", "webhdfs", "swebhdfs", "file"}) {
    const std::string path = StrCat(scheme, ":/data/x");
    EXPECT_EQ(PathScheme(path), scheme);
    EXPECT_EQ(PathAuthority(path), "") << path;
    EXPECT_EQ(path.substr(PathRootSize(path)), "data/x");
  }
  EXPECT_EQ(LocalPath("file:/data/a").value(), "/data/a");
  EXPECT_EQ(JoinPath("folder", "hdfs:/a"), "hdfs:/a");
  EXPECT_EQ(Dirname("hdfs:/a"), "hdfs:/");
  EXPECT_EQ(PathScheme("hdfs:a"), "") << "a file of this machine";
  EXPECT_EQ(PathScheme("kafka:/a"), "");
}

TEST(GlobMatchTest, Wildcards) {
  EXPECT_TRUE(MatchesWildcards("part-*", "part-00000"));
  EXPECT_TRUE(MatchesWildcards("*", "a"));
  EXPECT_TRUE(MatchesWildcards("*.csv", "a.b.csv"));
  EXPECT_FALSE(MatchesWildcards("*.csv", "a.csv.gz"));
  EXPECT_TRUE(MatchesWildcards("a?c", "abc"));
  EXPECT_FALSE(MatchesWildcards("a?c", "ac"));
  EXPECT_TRUE(MatchesWildcards("a*b*c", "a-b-b-c"));
  EXPECT_TRUE(MatchesWildcards("[a-c][!0-9]x", "bzx"));
  EXPECT_FALSE(MatchesWildcards("[a-c][!0-9]x", "b5x"));
  EXPECT_TRUE(MatchesWildcards("[]]", "]"));
  EXPECT_TRUE(MatchesWildcards("a[b", "a[b")) << "an unclosed bracket stands for itself";
  EXPECT_TRUE(MatchesWildcards("[a-]", "-"));
  EXPECT_FALSE(MatchesWildcards("", "a"));
  EXPECT_TRUE(MatchesWildcards("**", ""));
}

TEST(GlobMatchTest, HiddenNamesWantTheirOwnFirstCharacter) {
  EXPECT_FALSE(MatchesWildcards("*", ".tmp"));
  EXPECT_FALSE(MatchesWildcards("?SUCCESS", "_SUCCESS"));
  EXPECT_FALSE(MatchesWildcards("[._]x", ".x"));
  EXPECT_TRUE(MatchesWildcards(".*", ".tmp"));
  EXPECT_TRUE(MatchesWildcards("_*", "_SUCCESS"));
}

TEST(GlobMatchTest, ManyStarsTakePolynomialTime) {
  std::string pattern;
  for (int i = 0; i < 50; ++i) pattern += "*a";
  EXPECT_FALSE(MatchesWildcards(pattern + "b", std::string(5000, 'a')));
}

class GlobTest : public testing::Test {
 protected:
  GlobTest() : files_(NewMemoryFileSystem()) {
    for (const std::string_view path :
         {"/d/2026/part-1", "/d/2026/part-0", "/d/2026/_index", "/d/2026/.part-2.tmp-1",
          "/d/2025/part-0", "/d/notes", "/x"}) {
      const std::string text(path);
      EXPECT_TRUE(files_->MakeFolders(Dirname(text)).ok());
      EXPECT_TRUE(WriteFileAtomically(*files_, text, "").ok());
    }
  }
  std::vector<std::string> Found(const std::string& pattern) {
    return Glob(*files_, pattern).value_or(std::vector<std::string>{});
  }
  std::unique_ptr<FileSystem> files_;
};

TEST_F(GlobTest, MatchesInAnyComponentSorted) {
  EXPECT_THAT(Found("/d/2026/part-*"), ElementsAre("/d/2026/part-0", "/d/2026/part-1"));
  EXPECT_THAT(Found("/d/*/part-0"), ElementsAre("/d/2025/part-0", "/d/2026/part-0"));
  EXPECT_THAT(Found("/d/202[56]/part-?"),
              ElementsAre("/d/2025/part-0", "/d/2026/part-0", "/d/2026/part-1"));
  EXPECT_THAT(Found("/*"), ElementsAre("/d", "/x"));
  EXPECT_THAT(Found("*/2025/*"), ElementsAre("d/2025/part-0"));
  EXPECT_THAT(Found("x*"), ElementsAre("x"));
}

TEST_F(GlobTest, APatternWithoutWildcardsIsItself) {
  EXPECT_THAT(Found("/x"), ElementsAre("/x"));
  EXPECT_THAT(Found("/d/2026/_index"), ElementsAre("/d/2026/_index"));
}

TEST_F(GlobTest, AFileWithBracketsInItsNameIsItself) {
  const auto files = NewMemoryFileSystem();
  for (const char* name : {"data[1].csv", "data1.csv", "data2.csv"}) {
    ASSERT_TRUE(WriteFileAtomically(*files, name, "x").ok());
  }
  EXPECT_THAT(Glob(*files, "data[1].csv").value(), testing::ElementsAre("data[1].csv"));
  EXPECT_THAT(Glob(*files, "data[12].csv").value(), testing::ElementsAre("data1.csv", "data2.csv"));
}

TEST_F(GlobTest, AnAuthorityHasNoWildcards) {
  ASSERT_TRUE(files_->MakeFolders("fake://[::1]:9870/d").ok());
  ASSERT_TRUE(WriteFileAtomically(*files_, "fake://[::1]:9870/d/f", "x").ok());
  EXPECT_THAT(Glob(*files_, "fake://[::1]:9870/*/f").value(),
              testing::ElementsAre("fake://[::1]:9870/d/f"));
}

TEST_F(GlobTest, NothingFoundNamesThePattern) {
  for (const std::string pattern : {"/nothing", "/d/2026/q*", "/no/*", "/x/*", "/d/notes/*"}) {
    const absl::Status status = Glob(*files_, pattern).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << pattern;
    EXPECT_THAT(std::string(status.message()), HasSubstr("'" + pattern + "'"));
  }
}

TEST_F(GlobTest, OtherErrorsAreNotTakenForNothing) {
  FaultFileSystem faulty(*files_);
  faulty.FailNth(FileOperation::kList, 1, absl::PermissionDeniedError("no"));
  EXPECT_TRUE(absl::IsPermissionDenied(Glob(faulty, "/d/*").status()));
}

}  // namespace
}  // namespace muster::io
