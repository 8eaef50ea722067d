#include "muster/files/file_systems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "muster/io/file_system_conformance.h"
#include "muster/io/memory_file_system.h"
#include "muster/io/path_scheme.h"

namespace muster::files {
namespace {

using io::FileSystemConformance;
using io::FileSystemMember;
using testing::AllOf;
using testing::HasSubstr;

// A file in memory that can be read only while its path names it.
class PinnedFile : public io::RandomAccessFile {
 public:
  PinnedFile(io::FileSystem& files, std::unique_ptr<io::RandomAccessFile> inner,
             std::string identity)
      : files_(files), inner_(std::move(inner)), identity_(std::move(identity)) {}

  absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
    MUSTER_ASSIGN_OR_RETURN(const io::FileInfo now, files_.Stat(path()));
    if (now.identity == identity_) return inner_->Read(offset, size, buffer);
    return absl::NotFoundError(StrCat("read ", path(), ": it was replaced while it was read"));
  }
  const std::string& path() const override { return inner_->path(); }

 private:
  io::FileSystem& files_;
  const std::unique_ptr<io::RandomAccessFile> inner_;
  const std::string identity_;
};

// Behaves as a remote file system may (file_system_conformance.h).
class FakeRemote : public FileSystems {
 public:
  FakeRemote()
      : FileSystems({{.name = "fake", .form = "fake://HOST/PATH", .open = [](const std::string&) {
                        return io::NewMemoryFileSystem();
                      }}}) {}

  absl::StatusOr<std::unique_ptr<io::RandomAccessFile>> OpenForRead(
      const std::string& path) override {
    MUSTER_ASSIGN_OR_RETURN(auto file, FileSystems::OpenForRead(path));
    MUSTER_ASSIGN_OR_RETURN(io::FileInfo info, Stat(path));
    return std::make_unique<PinnedFile>(*this, std::move(file), std::move(info.identity));
  }
  absl::StatusOr<std::unique_ptr<io::WritableFile>> OpenForWrite(const std::string& path) override {
    MUSTER_RETURN_IF_ERROR(MakeFolders(io::Dirname(path)));
    return FileSystems::OpenForWrite(path);
  }
  absl::StatusOr<std::unique_ptr<io::WritableFile>> OpenForAppend(
      const std::string& path) override {
    MUSTER_RETURN_IF_ERROR(MakeFolders(io::Dirname(path)));
    return FileSystems::OpenForAppend(path);
  }
};

INSTANTIATE_TEST_SUITE_P(
    Members, FileSystemConformance,
    testing::Values(FileSystemMember{.name = "plain_path",
                                     .make = OpenFileSystems,
                                     .root = StrCat(testing::TempDir(), "muster-files-", getpid())},
                    FileSystemMember{
                        .name = "file_url",
                        .make = OpenFileSystems,
                        .root = StrCat("file://", testing::TempDir(), "muster-url-", getpid())},
                    FileSystemMember{.name = "fake_remote",
                                     .make = [] { return std::make_unique<FakeRemote>(); },
                                     .root = "fake://host:1/tests",
                                     .makes_parents = true,
                                     .drops_replaced = true}),
    io::FileSystemMemberName);

class FileSystemsTest : public testing::Test {
 protected:
  FileSystems files_{
      {{.name = "", .form = "plain paths", .open = Open("")},
       {.name = "fake", .form = "fake://HOST/PATH", .open = Open("fake")},
       {.name = "shut",
        .form = "shut://HOST/PATH",
        .open = [this](const std::string&) -> absl::StatusOr<std::unique_ptr<io::FileSystem>> {
          if (is_shut_) return absl::UnavailableError("the name node is away");
          return io::NewMemoryFileSystem();
        }}}};
  std::vector<std::string> opened_;
  bool is_shut_ = true;

 private:
  std::function<absl::StatusOr<std::unique_ptr<io::FileSystem>>(const std::string&)> Open(
      std::string name) {
    return [this, name](const std::string& authority) {
      opened_.push_back(StrCat(name, "|", authority));
      return io::NewMemoryFileSystem();
    };
  }
};

TEST_F(FileSystemsTest, EachAuthorityIsAFileSystemThatIsOpenedOnce) {
  for (const char* root : {"fake://a:1", "fake://b", "fake://"}) {
    EXPECT_TRUE(files_.MakeFolders(StrCat(root, "/d")).ok());
    EXPECT_TRUE(io::WriteFileAtomically(files_, StrCat(root, "/d/f"), root).ok());
  }
  EXPECT_EQ(io::ReadFile(files_, "fake://a:1/d/f").value(), "fake://a:1");
  EXPECT_EQ(io::ReadFile(files_, "fake:///d/f").value(), "fake://") << "the default one";
  EXPECT_THAT(io::Glob(files_, "fake://b/*/f").value(), testing::ElementsAre("fake://b/d/f"));
  EXPECT_THAT(opened_, testing::ElementsAre("fake|a:1", "fake|b", "fake|"));
}

TEST_F(FileSystemsTest, NamesOfOneFileSystemOpenItOnce) {
  std::vector<std::string> opened;
  const auto open = [&](const std::string& authority) {
    opened.push_back(authority);
    return io::NewMemoryFileSystem();
  };
  const auto canonical = [](const std::string& authority) -> absl::StatusOr<std::string> {
    if (authority == "?") return absl::NotFoundError("no name node is configured");
    return authority.empty() || authority == "nn" ? "nn:8020" : authority;
  };
  FileSystems files(
      {{.name = "dfs", .form = "dfs://NN/PATH", .open = open, .canonical = canonical}});
  EXPECT_EQ(files.Find("dfs:///d").value(), files.Find("dfs://nn:8020/d").value());
  const absl::Status renamed = files.Rename("dfs://nn/d", "dfs:///e");
  EXPECT_TRUE(absl::IsNotFound(renamed)) << "these are no two file systems: " << renamed;
  EXPECT_THAT(opened, testing::ElementsAre("nn:8020"));
  const absl::Status unknown = files.Stat("dfs://?/d").status();
  EXPECT_TRUE(absl::IsNotFound(unknown)) << unknown;
  EXPECT_THAT(std::string(ToStd(unknown.message())), HasSubstr("dfs://?/d: no name node"));
}

TEST_F(FileSystemsTest, AFileUrlIsAPlainPath) {
  ASSERT_TRUE(files_.MakeFolders("/d").ok());
  EXPECT_EQ(files_.Find("/d").value(), files_.Find("file:///d").value());
}

TEST_F(FileSystemsTest, AnUnknownSchemeIsNamedWithTheKnownOnes) {
  const absl::Status status = files_.Stat("s3://bucket/x").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(ToStd(status.message())),
              HasSubstr("s3://bucket/x: there is no file system for 's3://' here; known are plain "
                        "paths, fake://HOST/PATH, shut://HOST/PATH"));
}

TEST_F(FileSystemsTest, NothingIsRenamedFromOneFileSystemToAnother) {
  ASSERT_TRUE(files_.MakeFolders("fake://a").ok());
  ASSERT_TRUE(io::WriteFileAtomically(files_, "fake://a/f", "x").ok());
  for (const char* to : {"fake://b/f", "/f"}) {
    const absl::Status status = files_.Rename("fake://a/f", to);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(ToStd(status.message())),
                AllOf(HasSubstr("fake://a/f"), HasSubstr(to)));
  }
  EXPECT_EQ(io::ReadFile(files_, "fake://a/f").value(), "x");
}

TEST_F(FileSystemsTest, WhatCannotBeOpenedNowIsTriedAgain) {
  const absl::Status status = files_.MakeFolders("shut://h/d");
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(ToStd(status.message())),
              AllOf(HasSubstr("shut://h/d"), HasSubstr("the name node is away")));
  is_shut_ = false;
  EXPECT_TRUE(files_.MakeFolders("shut://h/d").ok());
}

TEST_F(FileSystemsTest, FilesOfTwoFileSystemsAreNotOne) {
  for (const char* root : {"fake://a", "fake://b"}) {
    ASSERT_TRUE(files_.MakeFolders(root).ok());
    ASSERT_TRUE(io::WriteFileAtomically(files_, StrCat(root, "/f"), "x").ok());
  }
  EXPECT_NE(files_.Stat("fake://a/f")->identity, files_.Stat("fake://b/f")->identity);
}

}  // namespace
}  // namespace muster::files
