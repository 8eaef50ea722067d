#include "muster/train/input/data_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/io/memory_file_system.h"

namespace muster::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(DataFilesTest, AreKnownByNameAndSizeWhereverTheyLie) {
  const auto files = io::NewMemoryFileSystem();
  ASSERT_TRUE(files->MakeFolders("a").ok() && files->MakeFolders("b").ok());
  for (const char* const path : {"a/p0", "a/p1", "b/p0", "b/p1"}) {
    ASSERT_TRUE(io::WriteFileAtomically(*files, path, "123").ok());
  }
  const auto describe = [&](const std::string& pattern) {
    const auto found = FindDataFiles(*files, {pattern});
    EXPECT_TRUE(found.ok()) << found.status();
    return DescribeDataFiles(*found);
  };
  EXPECT_THAT(describe("a/*"), HasSubstr("2 files of 6 bytes"));
  EXPECT_EQ(describe("a/*"), describe("b/*"));
  EXPECT_NE(describe("a/p0"), describe("a/p1"));
  ASSERT_TRUE(io::WriteFileAtomically(*files, "b/p1", "1234").ok());
  EXPECT_NE(describe("a/*"), describe("b/*"));
  EXPECT_TRUE(absl::IsNotFound(FindDataFiles(*files, {"c/*"}).status()));
}

TEST(DataFilesTest, FilesThatDoNotComeOutEvenAreSaidToBeTheCause) {
  const std::vector<DataFile> four = {{"a", 100}, {"b", 100}, {"c", 100}, {"d", 100}};
  EXPECT_THAT(DescribeUnevenShares(four, 3, 0),
              AllOf(HasSubstr("4 files"), HasSubstr("3 replicas"),
                    HasSubstr("chief-0 has 200 bytes, worker-0 100")));
  EXPECT_EQ(DescribeUnevenShares(four, 2, 0), "");
  EXPECT_EQ(DescribeUnevenShares(four, 5, 0), "") << "dealt by records";
  EXPECT_EQ(DescribeUnevenShares(four, 1, 0), "");
  EXPECT_EQ(DescribeUnevenShares({{"a", 100}, {"b", 110}}, 2, 0), "");
  EXPECT_THAT(DescribeUnevenShares({{"a", 100}, {"b", 900}}, 2, 0),
              HasSubstr("worker-0 has 900 bytes, chief-0 100"));
  EXPECT_THAT(DescribeUnevenShares(four, 3, 4), HasSubstr("chief-0 has 200"));
  EXPECT_EQ(DescribeUnevenShares(four, 3, 12), "") << "parts of records";
}

}  // namespace
}  // namespace muster::train
