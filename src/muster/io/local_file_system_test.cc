#include "muster/io/local_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::io {
namespace {

using testing::HasSubstr;

class LocalFileSystemTest : public testing::Test {
 protected:
  LocalFileSystemTest()
      : files_(NewLocalFileSystem()), root_(StrCat(testing::TempDir(), "muster-local-", getpid())) {
    EXPECT_TRUE(files_->MakeFolders(root_).ok());
  }
  ~LocalFileSystemTest() override { EXPECT_TRUE(files_->RemoveAll(root_).ok()); }

  std::unique_ptr<FileSystem> files_;
  std::string root_;
};

TEST_F(LocalFileSystemTest, AFileHasAnOwnerAndAMode) {
  const std::string path = root_ + "/f";
  ASSERT_TRUE(WriteFileAtomically(*files_, path, "x").ok());
  ASSERT_EQ(chmod(path.c_str(), 01640), 0);
  const FileInfo info = files_->Stat(path).value();
  EXPECT_EQ(info.owner, StrCat(geteuid()));
  EXPECT_FALSE(info.group.empty());
  EXPECT_EQ(info.mode, 01640);
  EXPECT_EQ(info.replication, 0);
}

TEST_F(LocalFileSystemTest, AnUnknownSchemeIsRefusedByEveryOperation) {
  const std::string path = "hdfs://127.0.0.1:29000/m";
  const std::vector<absl::Status> all = {files_->OpenForRead(path).status(),
                                         files_->OpenForWrite(path).status(),
                                         files_->OpenForLargeWrite(path).status(),
                                         files_->OpenForAppend(path).status(),
                                         files_->Stat(path).status(),
                                         files_->List(path).status(),
                                         files_->MakeFolders(path),
                                         files_->Rename(path, root_ + "/m"),
                                         files_->Rename(root_, path),
                                         files_->Remove(path),
                                         files_->RemoveAll(path),
                                         files_->SyncFolder(path),
                                         Glob(*files_, path + "/*.csv").status(),
                                         WriteFileAtomically(*files_, path, "x")};
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(absl::IsInvalidArgument(all[i])) << i << ": " << all[i];
    EXPECT_THAT(std::string(all[i].message()),
                HasSubstr("there is no file system for 'hdfs://' here; known are paths of this "
                          "machine, plain or as file:///PATH"))
        << i;
  }
  EXPECT_NE(access("hdfs:", F_OK), 0) << "a local folder was made of a URL";
}

TEST_F(LocalFileSystemTest, AFileWithoutASizeIsReadToItsEnd) {
  ASSERT_EQ(files_->Stat("/proc/self/status")->size, 0u);
  EXPECT_THAT(ReadFile(*files_, "/proc/self/status").value(), HasSubstr("Pid:"));
  const absl::Status large = ReadFile(*files_, "/proc/self/status", 10).status();
  EXPECT_TRUE(absl::IsInvalidArgument(large)) << large;
}

TEST_F(LocalFileSystemTest, AFileUrlIsItsPath) {
  const std::string url = StrCat("file://", root_);
  ASSERT_TRUE(files_->MakeFolders(url + "/a/b").ok());
  ASSERT_TRUE(WriteFileAtomically(*files_, url + "/a/b/c.csv", "text").ok());
  EXPECT_EQ(ReadFile(*files_, root_ + "/a/b/c.csv").value(), "text");
  EXPECT_THAT(Glob(*files_, url + "/*/b/*.csv").value(), testing::ElementsAre(url + "/a/b/c.csv"));
  EXPECT_TRUE(files_->RemoveAll(url + "/a").ok());
  EXPECT_TRUE(absl::IsNotFound(files_->Stat(root_ + "/a").status()));
}

TEST_F(LocalFileSystemTest, AFullDeviceIsToldByFlushAndByClose) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "needs /dev/full";
  auto file = files_->OpenForWrite("/dev/full").value();
  EXPECT_TRUE(file->Append("buffered").ok());
  const absl::Status flushed = file->Flush();
  EXPECT_TRUE(absl::IsResourceExhausted(flushed)) << flushed;
  EXPECT_THAT(std::string(flushed.message()), HasSubstr("write /dev/full: No space left"));
  EXPECT_EQ(file->Append("x"), flushed) << "a failed file stays failed";
  EXPECT_EQ(file->Close(), flushed);

  file = files_->OpenForWrite("/dev/full").value();
  EXPECT_TRUE(file->Append("buffered").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(file->Close()));

  file = files_->OpenForWrite("/dev/full").value();
  EXPECT_TRUE(absl::IsResourceExhausted(file->Append(std::string(1 << 20, 'x'))));
}

TEST_F(LocalFileSystemTest, SmallAppendsAreBuffered) {
  const std::string path = JoinPath(root_, "f");
  auto file = files_->OpenForWrite(path).value();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(file->Append("0123456789").ok());
  EXPECT_EQ(files_->Stat(path)->size, 0u);
  ASSERT_TRUE(file->Close().ok());
  EXPECT_EQ(files_->Stat(path)->size, 1000u);
}

TEST_F(LocalFileSystemTest, APipeIsRefusedWithoutWaitingForItsWriter) {
  const std::string path = JoinPath(root_, "pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const absl::Status status = files_->OpenForRead(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
}

TEST_F(LocalFileSystemTest, StandardInputIsReadOnceAndInOrder) {
  const int saved = dup(STDIN_FILENO);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
  ASSERT_EQ(write(ends[1], "abcdef", 6), 6);
  close(ends[1]);

  const auto file = files_->OpenForRead(std::string(kStandardInput)).value();
  char buffer[8];
  EXPECT_EQ(file->Read(0, 4, buffer).value(), 4u);
  EXPECT_EQ(std::string(buffer, 4), "abcd");
  const absl::Status again = file->Read(0, 4, buffer).status();
  EXPECT_EQ(again.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(file->Read(4, 4, buffer).value(), 2u);
  EXPECT_EQ(file->Read(6, 4, buffer).value(), 0u);

  dup2(saved, STDIN_FILENO);
  close(saved);
  close(ends[0]);
}

TEST_F(LocalFileSystemTest, AnUnwritableFolderIsPermissionDenied) {
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(chmod(root_.c_str(), 0555), 0);
  const uid_t user = geteuid();
  if (user == 0) {  // may write anywhere
    ASSERT_EQ(seteuid(kNobody), 0);
  }
  const std::string path = JoinPath(root_, "f");
  const absl::Status status = files_->OpenForWrite(path).status();
  ASSERT_EQ(seteuid(user), 0);
  ASSERT_EQ(chmod(root_.c_str(), 0755), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
}

TEST_F(LocalFileSystemTest, RemoveAllDoesNotFollowLinks) {
  ASSERT_TRUE(files_->MakeFolders(JoinPath(root_, "kept")).ok());
  ASSERT_TRUE(WriteFileAtomically(*files_, JoinPath(root_, "kept/f"), "x").ok());
  ASSERT_TRUE(files_->MakeFolders(JoinPath(root_, "gone")).ok());
  ASSERT_EQ(symlink(JoinPath(root_, "kept").c_str(), JoinPath(root_, "gone/link").c_str()), 0);
  ASSERT_TRUE(files_->RemoveAll(JoinPath(root_, "gone")).ok());
  EXPECT_EQ(ReadFile(*files_, JoinPath(root_, "kept/f")).value(), "x");
}

}  // namespace
}  // namespace muster::io
