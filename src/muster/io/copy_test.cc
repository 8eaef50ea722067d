#include "muster/io/copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/io/fault_file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CopyTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, std::string_view text) {
    ASSERT_TRUE(files_->MakeFolders(Dirname(path)).ok());
    ASSERT_TRUE(WriteFileAtomically(*files_, path, text).ok());
  }
  std::string Read(const std::string& path) {
    const absl::StatusOr<std::string> text = ReadFile(*files_, path);
    return text.ok() ? *text : text.status().ToString();
  }

  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
};

TEST_F(CopyTest, FilesOfAnyNumberOfPieces) {
  constexpr size_t kPiece = size_t{1} << 20;
  for (const size_t size : {size_t{0}, size_t{1}, kPiece - 1, kPiece, kPiece + 1, 3 * kPiece}) {
    std::string text(size, '\0');
    for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 >> 7);
    Write("from", text);
    ASSERT_TRUE(CopyFile(*files_, "from", "to").ok());
    EXPECT_TRUE(Read("to") == text) << size;
  }
}

TEST_F(CopyTest, AFolderWithAllInIt) {
  Write("a/one", "1");
  Write("a/b/two", "2");
  Write("a/b/c/three", "3");
  ASSERT_TRUE(files_->MakeFolders("a/empty").ok());
  Write("a/" + TemporaryPath("half"), "not whole");
  ASSERT_TRUE(CopyFolder(*files_, "a", "x/y").ok());
  EXPECT_THAT(*files_->List("x/y"), ElementsAre("b", "empty", "one"));
  EXPECT_THAT(*files_->List("x/y/empty"), ElementsAre());
  EXPECT_EQ(Read("x/y/one") + Read("x/y/b/two") + Read("x/y/b/c/three"), "123");
}

TEST_F(CopyTest, WhatIsLeftOutIsNamedByItsPathBelow) {
  Write("a/one", "1");
  Write("a/b/one", "2");
  Write("a/c/one", "3");
  const auto left_out = [](std::string_view path) { return path == "c" || path == "b/one"; };
  ASSERT_TRUE(CopyFolder(*files_, "a", "x", left_out).ok());
  EXPECT_THAT(*files_->List("x"), ElementsAre("b", "one"));
  EXPECT_THAT(*files_->List("x/b"), ElementsAre());
}

TEST_F(CopyTest, AllIsSynced) {
  Write("a/one", "1");
  Write("a/b/two", "2");
  FaultFileSystem counting(*files_);
  ASSERT_TRUE(CopyFolder(counting, "a", "x").ok());
  EXPECT_EQ(counting.count(FileOperation::kSync), 2);
  EXPECT_EQ(counting.count(FileOperation::kSyncFolder), 2);
}

TEST_F(CopyTest, FailuresAreTold) {
  EXPECT_TRUE(absl::IsNotFound(CopyFile(*files_, "none", "to")));
  EXPECT_TRUE(absl::IsNotFound(CopyFolder(*files_, "none", "to")));
  Write("a/one", "1");
  using enum FileOperation;
  for (const auto operation :
       {kOpen, kRead, kStat, kList, kCreate, kWrite, kSync, kClose, kMakeFolders, kSyncFolder}) {
    FaultFileSystem faulty(*files_);
    faulty.FailNth(operation, 1, absl::ResourceExhaustedError("made to fail"));
    const absl::Status status = CopyFolder(faulty, "a", "x");
    EXPECT_THAT(std::string(status.message()), HasSubstr("made to fail"))
        << static_cast<int>(operation);
  }
}

TEST_F(CopyTest, EndlessFoldersEnd) {
  std::string deep = "a";
  for (int i = 0; i < 40; ++i) deep += "/a";
  ASSERT_TRUE(files_->MakeFolders(deep).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(CopyFolder(*files_, "a", "x")));
}

}  // namespace
}  // namespace muster::io
