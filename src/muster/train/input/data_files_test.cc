#include "muster/train/input/data_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/data/memory_log.h"
#include "muster/io/memory_file_system.h"

namespace muster::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::vector<data::SourceItem> GetFiles(const std::vector<uint64_t>& sizes) {
  std::vector<data::SourceItem> items;
  for (const uint64_t size : sizes) items.push_back({.name = "f", .common_name = "f", .end = size});
  return items;
}

TEST(DataFilesTest, FilesAreIdentifiedByNameAndSizeInAnyFolder) {
  const auto files = io::NewMemoryFileSystem();
  ASSERT_TRUE(files->MakeFolders("a").ok() && files->MakeFolders("b").ok());
  for (const char* const path : {"a/p0", "a/p1", "b/p0", "b/p1"}) {
    ASSERT_TRUE(io::WriteFileAtomically(*files, path, "123").ok());
  }
  const auto describe = [&](const std::string& pattern) {
    const auto found = data::ListSources(*files, {.patterns = {pattern}});
    EXPECT_TRUE(found.ok()) << found.status();
    return DescribeDataFiles(*found);
  };
  EXPECT_THAT(describe("a/*"), HasSubstr("2 files of 6 bytes"));
  EXPECT_EQ(describe("a/*"), describe("b/*"));
  EXPECT_NE(describe("a/p0"), describe("a/p1"));
  ASSERT_TRUE(io::WriteFileAtomically(*files, "b/p1", "1234").ok());
  EXPECT_NE(describe("a/*"), describe("b/*"));
  EXPECT_TRUE(absl::IsNotFound(data::ListSources(*files, {.patterns = {"c/*"}}).status()));
}

TEST(DataFilesTest, UnevenFilesAreReported) {
  const std::vector<data::SourceItem> four = GetFiles({100, 100, 100, 100});
  EXPECT_THAT(DescribeUnevenShares(four, 3, 0),
              AllOf(HasSubstr("4 files"), HasSubstr("3 replicas"),
                    HasSubstr("chief-0 has 200 bytes, worker-0 100")));
  EXPECT_EQ(DescribeUnevenShares(four, 2, 0), "");
  EXPECT_EQ(DescribeUnevenShares(four, 5, 0), "") << "records are divided";
  EXPECT_EQ(DescribeUnevenShares(four, 1, 0), "");
  EXPECT_EQ(DescribeUnevenShares(GetFiles({100, 110}), 2, 0), "");
  EXPECT_THAT(DescribeUnevenShares(GetFiles({100, 900}), 2, 0),
              HasSubstr("worker-0 has 900 bytes, chief-0 100"));
  EXPECT_THAT(DescribeUnevenShares(four, 3, 4), HasSubstr("chief-0 has 200"));
  EXPECT_EQ(DescribeUnevenShares(four, 3, 12), "") << "records are divided into shards";
}

TEST(DataFilesTest, PartitionsAreIdentifiedByRangeAndIdentity) {
  const auto log = std::make_shared<data::MemoryLog>();
  log->Append("clicks/0", "a");
  log->Skip("clicks/0", 4);
  log->Append("clicks/1", "b");
  const auto files = io::NewMemoryFileSystem();
  const data::SourceSpec spec = {.patterns = {"log://clicks"}, .schemes = {{"log", log}}};
  const auto describe = [&] {
    const auto found = data::ListSources(*files, spec);
    EXPECT_TRUE(found.ok()) << found.status();
    return DescribeDataFiles(*found);
  };
  const std::string before = describe();
  EXPECT_THAT(before, HasSubstr("2 partitions of 6 offsets, names and ranges"));
  EXPECT_THAT(DescribeUnevenShares(*data::ListSources(*files, spec), 2, 0),
              AllOf(HasSubstr("2 partitions"), HasSubstr("chief-0 has 5 offsets, worker-0 1")));
  log->set_identity("made again");
  EXPECT_NE(describe(), before);
  log->set_identity("first");
  EXPECT_EQ(describe(), before);
  log->Append("clicks/1", "c");
  EXPECT_NE(describe(), before);
}

}  // namespace
}  // namespace muster::train
