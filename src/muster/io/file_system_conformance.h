// Tests that every FileSystem must pass. An implementation's test says
//   INSTANTIATE_TEST_SUITE_P(Mine, FileSystemConformance, testing::Values(FileSystemMember{...}),
//                            FileSystemMemberName);
// To be included in one source file of a test program.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "muster/io/file_system.h"

namespace muster::io {

struct FileSystemMember {
  std::string name;
  std::function<std::unique_ptr<FileSystem>()> make;
  std::string root;  // a folder that the tests may make, fill and remove
  // What remote file systems may do differently; callers must not depend on either behavior.
  bool makes_parents = false;     // opening a file for writing makes the folders that it lies in
  bool drops_replaced = false;    // reading a file that was replaced since is NOT_FOUND
  bool replaces_written = false;  // OpenForWrite of a file makes another file of that name
};

inline std::string FileSystemMemberName(const testing::TestParamInfo<FileSystemMember>& member) {
  return member.param.name;
}

class FileSystemConformance : public testing::TestWithParam<FileSystemMember> {
 protected:
  void SetUp() override {
    files_ = GetParam().make();
    root_ = GetParam().root;
    ASSERT_TRUE(files_->RemoveAll(root_).ok());
    ASSERT_TRUE(files_->MakeFolders(root_).ok());
  }
  void TearDown() override { EXPECT_TRUE(files_->RemoveAll(root_).ok()); }

  std::string Path(std::string_view name) const { return JoinPath(root_, name); }

  void Write(const std::string& path, std::string_view contents) {
    absl::StatusOr<std::unique_ptr<WritableFile>> file = files_->OpenForWrite(path);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append(contents).ok());
    ASSERT_TRUE((*file)->Close().ok());
  }

  std::string Contents(const std::string& path) {
    absl::StatusOr<std::string> contents = ReadFile(*files_, path);
    EXPECT_TRUE(contents.ok()) << contents.status();
    return contents.ok() ? *contents : "";
  }

  void ExpectError(const absl::Status& status, absl::StatusCode code, const std::string& path) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(path));
  }

  std::unique_ptr<FileSystem> files_;
  std::string root_;
};

TEST_P(FileSystemConformance, WritesAndReadsBack) {
  const std::string zeros("a\0b\n", 4);
  Write(Path("f"), zeros);
  EXPECT_EQ(Contents(Path("f")), zeros);
  Write(Path("f"), "new");
  EXPECT_EQ(Contents(Path("f")), "new") << "opening for writing truncates";
  Write(Path("empty"), "");
  EXPECT_EQ(Contents(Path("empty")), "");
}

TEST_P(FileSystemConformance, KeepsManySmallAndSomeLargeAppends) {
  std::string expected;
  absl::StatusOr<std::unique_ptr<WritableFile>> file = files_->OpenForWrite(Path("f"));
  ASSERT_TRUE(file.ok()) << file.status();
  for (int i = 0; i < 3000; ++i) {
    std::string piece = StrCat("piece ", i, ";");
    if (i % 1000 == 500) piece.append(200'000, static_cast<char>('a' + i / 1000));
    ASSERT_TRUE((*file)->Append(piece).ok());
    expected += piece;
  }
  ASSERT_TRUE((*file)->Close().ok());
  EXPECT_EQ(Contents(Path("f")), expected);
}

TEST_P(FileSystemConformance, LargeFilesHaveEveryByteInItsPlace) {
  std::string contents(size_t{9} << 20, '\0');
  for (size_t i = 0; i < contents.size(); ++i) contents[i] = static_cast<char>(i * 31 + i / 4093);
  const size_t block = size_t{4} << 20;
  for (const size_t size : {size_t{0}, size_t{5}, block - 1, block, block + 4096, 2 * block + 77}) {
    for (const size_t flushed_at : {size, size_t{1000}}) {
      absl::StatusOr<std::unique_ptr<WritableFile>> file = files_->OpenForLargeWrite(Path("f"));
      ASSERT_TRUE(file.ok()) << file.status();
      std::string_view rest = std::string_view(contents).substr(0, size);
      if (flushed_at < size) {
        ASSERT_TRUE((*file)->Append(rest.substr(0, flushed_at)).ok());
        ASSERT_TRUE((*file)->Flush().ok());
        EXPECT_EQ(Contents(Path("f")), rest.substr(0, flushed_at));
        rest.remove_prefix(flushed_at);
      }
      while (!rest.empty()) {
        ASSERT_TRUE((*file)->Append(rest.substr(0, 300'007)).ok());
        rest.remove_prefix(std::min<size_t>(rest.size(), 300'007));
      }
      ASSERT_TRUE((*file)->Sync().ok());
      ASSERT_TRUE((*file)->Close().ok());
      EXPECT_EQ((*file)->Close().code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_TRUE(Contents(Path("f")) == std::string_view(contents).substr(0, size)) << size;
    }
  }
}

TEST_P(FileSystemConformance, FlushMakesDataReadable) {
  absl::StatusOr<std::unique_ptr<WritableFile>> file = files_->OpenForWrite(Path("f"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append("one").ok());
  ASSERT_TRUE((*file)->Flush().ok());
  EXPECT_EQ(Contents(Path("f")), "one");
  ASSERT_TRUE((*file)->Append("two").ok());
  ASSERT_TRUE((*file)->Sync().ok());
  EXPECT_EQ(Contents(Path("f")), "onetwo");
  ASSERT_TRUE((*file)->Close().ok());
}

TEST_P(FileSystemConformance, AnUnclosedFileDropsWhatWasNotFlushed) {
  {
    absl::StatusOr<std::unique_ptr<WritableFile>> file = files_->OpenForWrite(Path("f"));
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append("kept").ok());
    ASSERT_TRUE((*file)->Flush().ok());
    ASSERT_TRUE((*file)->Append("dropped").ok());
  }
  EXPECT_EQ(Contents(Path("f")), "kept");
}

TEST_P(FileSystemConformance, AClosedFileRefusesEverything) {
  absl::StatusOr<std::unique_ptr<WritableFile>> file = files_->OpenForWrite(Path("f"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->path(), Path("f"));
  ASSERT_TRUE((*file)->Close().ok());
  const auto code = absl::StatusCode::kFailedPrecondition;
  ExpectError((*file)->Append("x"), code, Path("f"));
  ExpectError((*file)->Flush(), code, Path("f"));
  ExpectError((*file)->Sync(), code, Path("f"));
  ExpectError((*file)->Close(), code, Path("f"));
  EXPECT_EQ(Contents(Path("f")), "");
}

TEST_P(FileSystemConformance, AppendContinuesAtTheEnd) {
  for (const std::string_view piece : {"one,", "two,", "three"}) {
    absl::StatusOr<std::unique_ptr<WritableFile>> file = files_->OpenForAppend(Path("f"));
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append(piece).ok());
    ASSERT_TRUE((*file)->Close().ok());
  }
  EXPECT_EQ(Contents(Path("f")), "one,two,three");
}

TEST_P(FileSystemConformance, ReadsAtAPosition) {
  Write(Path("f"), "0123456789");
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> file = files_->OpenForRead(Path("f"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->path(), Path("f"));
  char buffer[8] = {};
  const auto read = [&](uint64_t offset, size_t size) {
    absl::StatusOr<size_t> count = (*file)->Read(offset, size, buffer);
    EXPECT_TRUE(count.ok()) << count.status();
    return std::string(buffer, count.value_or(0));
  };
  EXPECT_EQ(read(3, 4), "3456");
  EXPECT_EQ(read(0, 2), "01");
  EXPECT_EQ(read(7, 8), "789");
  EXPECT_EQ(read(10, 1), "");
  EXPECT_EQ(read(1'000'000, 1), "");
  EXPECT_EQ(read(5, 0), "");
}

TEST_P(FileSystemConformance, OneFileIsReadByManyThreads) {
  std::string contents;
  for (int i = 0; i < 50'000; ++i) contents += static_cast<char>('a' + i % 26);
  Write(Path("f"), contents);
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> file = files_->OpenForRead(Path("f"));
  ASSERT_TRUE(file.ok()) << file.status();
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::string buffer(100, '\0');
      for (size_t at = t * 37; at + 100 < contents.size(); at += 991) {
        absl::StatusOr<size_t> count = (*file)->Read(at, 100, buffer.data());
        if (!count.ok() || *count != 100 || contents.compare(at, 100, buffer) != 0) ++wrong;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TEST_P(FileSystemConformance, StatTellsSizeAndKind) {
  Write(Path("f"), "12345");
  absl::StatusOr<FileInfo> info = files_->Stat(Path("f"));
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->size, 5u);
  EXPECT_FALSE(info->is_folder);
  EXPECT_GT(info->modified_ns, 0);
  info = files_->Stat(root_);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_TRUE(info->is_folder);
  EXPECT_EQ(info->size, 0u);
}

TEST_P(FileSystemConformance, EntriesAreWhatListAndStatTell) {
  Write(Path("b"), "12345");
  Write(Path("a"), "");
  ASSERT_TRUE(files_->MakeFolders(Path("c")).ok());
  const auto entries = files_->ListEntries(root_);
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 3u);
  const char* const names[] = {"a", "b", "c"};
  for (size_t i = 0; i < entries->size(); ++i) {
    const FolderEntry& entry = (*entries)[i];
    EXPECT_EQ(entry.name, names[i]);
    const FileInfo info = files_->Stat(Path(names[i])).value();
    EXPECT_EQ(entry.info.size, info.size);
    EXPECT_EQ(entry.info.modified_ns, info.modified_ns);
    EXPECT_EQ(entry.info.is_folder, info.is_folder);
    EXPECT_EQ(entry.info.identity, info.identity);
  }
  EXPECT_EQ(files_->ListEntries(Path("a")).status().code(), absl::StatusCode::kFailedPrecondition);
  ExpectError(files_->ListEntries(Path("d")).status(), absl::StatusCode::kNotFound, Path("d"));
}

TEST_P(FileSystemConformance, IdentityIsTheFilesAndNotTheNames) {
  const auto identity = [this](const char* name) { return files_->Stat(Path(name))->identity; };
  Write(Path("f"), "1");
  Write(Path("g"), "1");
  const std::string first = identity("f"), second = identity("g");
  if (first.empty()) GTEST_SKIP() << "this file system tells no identities";
  EXPECT_NE(first, second);
  EXPECT_NE(first, files_->Stat(root_)->identity);
  Write(Path("f"), "12");
  if (!GetParam().replaces_written) {
    EXPECT_EQ(identity("f"), first) << "writing keeps the file";
  }
  ASSERT_TRUE(files_->Rename(Path("g"), Path("f")).ok());
  EXPECT_EQ(identity("f"), second) << "a rename replaces it";
}

TEST_P(FileSystemConformance, WhatIsNotThereIsNotFound) {
  const auto code = absl::StatusCode::kNotFound;
  const std::string path = Path("nothing");
  ExpectError(files_->OpenForRead(path).status(), code, path);
  ExpectError(files_->Stat(path).status(), code, path);
  ExpectError(files_->List(path).status(), code, path);
  ExpectError(files_->Remove(path), code, path);
  ExpectError(files_->Rename(path, Path("x")), code, path);
  ExpectError(files_->SyncFolder(path), code, path);
  const std::string inside = Path("nothing/f");
  if (GetParam().makes_parents) {
    Write(inside, "x");
  } else {
    ExpectError(files_->OpenForWrite(inside).status(), code, inside);
    ExpectError(files_->OpenForAppend(inside).status(), code, inside);
  }
  EXPECT_TRUE(files_->RemoveAll(path).ok());
  ExpectError(files_->Stat(path).status(), code, path);
  EXPECT_TRUE(files_->RemoveAll(path).ok()) << "it does not exist any more";
}

TEST_P(FileSystemConformance, AFolderIsNotAFile) {
  ASSERT_TRUE(files_->MakeFolders(Path("d")).ok());
  const auto code = absl::StatusCode::kFailedPrecondition;
  ExpectError(files_->OpenForRead(Path("d")).status(), code, Path("d"));
  ExpectError(files_->OpenForWrite(Path("d")).status(), code, Path("d"));
  ExpectError(files_->OpenForAppend(Path("d")).status(), code, Path("d"));
  ExpectError(files_->Remove(Path("d")), code, Path("d"));
  Write(Path("f"), "x");
  ExpectError(files_->List(Path("f")).status(), code, Path("f"));
  ExpectError(files_->MakeFolders(Path("f")), code, Path("f"));
  ExpectError(files_->MakeFolders(Path("f/g")), code, Path("f"));
  ExpectError(files_->Rename(Path("f"), Path("d")), code, Path("d"));
  ExpectError(files_->Rename(Path("d"), Path("f")), code, Path("f"));
  EXPECT_EQ(Contents(Path("f")), "x");
}

TEST_P(FileSystemConformance, ListsNamesSorted) {
  Write(Path("b"), "");
  Write(Path("a.c"), "");
  Write(Path(".hidden"), "");
  ASSERT_TRUE(files_->MakeFolders(Path("a/deeper")).ok());
  Write(Path("a/inside"), "");
  absl::StatusOr<std::vector<std::string>> names = files_->List(root_);
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_THAT(*names, testing::ElementsAre(".hidden", "a", "a.c", "b"));
  names = files_->List(Path("a"));
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_THAT(*names, testing::ElementsAre("deeper", "inside"));
}

TEST_P(FileSystemConformance, MakesFoldersWithTheirParents) {
  EXPECT_TRUE(files_->MakeFolders(Path("a/b/c")).ok());
  EXPECT_TRUE(files_->MakeFolders(Path("a/b/c/")).ok());
  EXPECT_TRUE(files_->MakeFolders(Path("a/b")).ok());
  Write(Path("a/b/c/f"), "x");
  EXPECT_TRUE(files_->SyncFolder(Path("a/b/c")).ok());
  EXPECT_EQ(Contents(Path("a/b/c/f")), "x");
}

TEST_P(FileSystemConformance, RenameReplacesAFile) {
  const auto code = absl::StatusCode::kNotFound;
  Write(Path("old"), "old");
  Write(Path("new"), "new");
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> open = files_->OpenForRead(Path("old"));
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_TRUE(files_->Rename(Path("new"), Path("old")).ok());
  EXPECT_EQ(Contents(Path("old")), "new");
  EXPECT_TRUE(absl::IsNotFound(files_->Stat(Path("new")).status()));
  char buffer[3];
  const absl::StatusOr<size_t> read = (*open)->Read(0, 3, buffer);
  if (GetParam().drops_replaced) return ExpectError(read.status(), code, Path("old"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(std::string(buffer, 3), "old") << "a reader keeps the file that it opened";
}

TEST_P(FileSystemConformance, RenameMovesAFolder) {
  ASSERT_TRUE(files_->MakeFolders(Path("from/sub")).ok());
  Write(Path("from/f"), "1");
  Write(Path("from/sub/g"), "2");
  Write(Path("from-not"), "3");
  EXPECT_TRUE(files_->Rename(Path("from"), Path("to")).ok());
  EXPECT_EQ(Contents(Path("to/f")), "1");
  EXPECT_EQ(Contents(Path("to/sub/g")), "2");
  EXPECT_EQ(Contents(Path("from-not")), "3");
  EXPECT_TRUE(absl::IsNotFound(files_->Stat(Path("from")).status()));
  ASSERT_TRUE(files_->MakeFolders(Path("other")).ok());
  ExpectError(files_->Rename(Path("other"), Path("to")), absl::StatusCode::kFailedPrecondition,
              Path("to"));
  EXPECT_TRUE(files_->Rename(Path("to"), Path("other")).ok()) << "an empty folder is replaced";
  EXPECT_EQ(Contents(Path("other/f")), "1");
}

TEST_P(FileSystemConformance, RemovesFilesAndFolders) {
  ASSERT_TRUE(files_->MakeFolders(Path("d/sub")).ok());
  Write(Path("d/sub/f"), "1");
  Write(Path("d-not"), "2");
  EXPECT_TRUE(files_->RemoveAll(Path("d")).ok());
  EXPECT_TRUE(absl::IsNotFound(files_->Stat(Path("d/sub/f")).status()));
  EXPECT_TRUE(absl::IsNotFound(files_->Stat(Path("d")).status()));
  EXPECT_TRUE(files_->Remove(Path("d-not")).ok());
  EXPECT_TRUE(absl::IsNotFound(files_->Stat(Path("d-not")).status()));
}

}  // namespace muster::io
