#include "muster/io/fenced_file_system.h"

#include <unistd.h>

#include "gtest/gtest.h"
#include "muster/base/strings.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/local_file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::io {
namespace {

TEST(FencedFileSystemTest, ChangesNothingAfterItWasFenced) {
  const auto memory = NewMemoryFileSystem();
  FaultFileSystem watched(*memory);
  bool fenced = false;
  FencedFileSystem files(
      watched, [&] { return fenced ? absl::AbortedError("replaced") : absl::OkStatus(); });
  ASSERT_TRUE(files.MakeFolders("d").ok());
  ASSERT_TRUE(WriteFileAtomically(files, "d/a", "1").ok());

  fenced = true;
  const int64_t changes = watched.changes();
  EXPECT_TRUE(absl::IsAborted(WriteFileAtomically(files, "d/b", "2")));
  EXPECT_TRUE(absl::IsAborted(files.OpenForWrite("d/b").status()));
  EXPECT_TRUE(absl::IsAborted(files.OpenForLargeWrite("d/b").status()));
  EXPECT_TRUE(absl::IsAborted(files.OpenForAppend("d/a").status()));
  EXPECT_TRUE(absl::IsAborted(files.MakeFolders("e")));
  EXPECT_TRUE(absl::IsAborted(files.Rename("d/a", "d/b")));
  EXPECT_TRUE(absl::IsAborted(files.Remove("d/a")));
  EXPECT_TRUE(absl::IsAborted(files.RemoveAll("d")));
  EXPECT_EQ(watched.changes(), changes);
  EXPECT_EQ(ReadFile(files, "d/a").value(), "1");
}

TEST(FencedFileSystemTest, AFileThatIsOpenKeepsNothingThatCameAfterTheFence) {
  const auto local = NewLocalFileSystem();
  bool fenced = false;
  FencedFileSystem files(
      *local, [&] { return fenced ? absl::AbortedError("replaced") : absl::OkStatus(); });
  const std::string path = StrCat(testing::TempDir(), "muster-fenced-", getpid());
  for (const bool append : {false, true}) {
    fenced = false;
    auto file = (append ? files.OpenForAppend(path) : files.OpenForWrite(path)).value();
    ASSERT_TRUE(file->Append("a").ok());
    ASSERT_TRUE(file->Flush().ok());
    ASSERT_TRUE(file->Append("held back").ok());
    fenced = true;
    EXPECT_TRUE(absl::IsAborted(file->Append("later")));
    EXPECT_TRUE(absl::IsAborted(file->Flush()));
    EXPECT_TRUE(absl::IsAborted(file->Sync()));
    EXPECT_TRUE(absl::IsAborted(file->Close()));
    file.reset();
    EXPECT_EQ(ReadFile(files, path).value(), append ? "aa" : "a");
  }
  ASSERT_TRUE(local->Remove(path).ok());
}

// What the header says of the moment between the answer and the change.
TEST(FencedFileSystemTest, WhoTakesOverRemovesWhatASleeperWouldRename) {
  const auto memory = NewMemoryFileSystem();
  int asked = 0;
  FencedFileSystem files(*memory, [&]() -> absl::Status {
    // It is allowed to rename, and sleeps before it does.
    if (++asked == 2) return memory->Remove(TemporaryPath("state"));
    return absl::OkStatus();
  });
  ASSERT_TRUE(WriteFileAtomically(*memory, "state", "of the new one").ok());
  EXPECT_TRUE(absl::IsNotFound(WriteFileAtomically(files, "state", "of the old one")));
  EXPECT_EQ(ReadFile(*memory, "state").value(), "of the new one");
}

}  // namespace
}  // namespace muster::io
