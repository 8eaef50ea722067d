#include "muster/files/hdfs/file_status.h"

#include <gtest/gtest.h>

namespace muster::files {
namespace {

using formats::Json;

TEST(FileStatusTest, AFileAndAFolder) {
  const auto file = ParseFileStatus(
      Json::parse(R"({"FileStatus":{"type":"FILE","length":7,"modificationTime":1500,"fileId":16390,
                  "blockSize":134217728,"pathSuffix":"","owner":"me","group":"all",
                  "permission":"1640","replication":3,"aclBit":true}})"),
      "GETFILESTATUS /x");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->info.size, 7u);
  EXPECT_EQ(file->info.modified_ns, 1'500'000'000);
  EXPECT_EQ(file->info.identity, "16390");
  EXPECT_FALSE(file->info.is_folder);
  EXPECT_EQ(file->block_bytes, uint64_t{128} << 20);
  EXPECT_EQ(file->info.owner, "me");
  EXPECT_EQ(file->info.group, "all");
  EXPECT_EQ(file->info.mode, 01640);
  EXPECT_TRUE(file->info.has_acl);
  EXPECT_EQ(file->info.replication, 3);
}

TEST(FileStatusTest, AFolderIsSortedByName) {
  const auto entries = ParseFileStatuses(
      Json::parse(R"({"FileStatuses":{"FileStatus":[{"type":"FILE","pathSuffix":"b"},
                  {"type":"DIRECTORY","pathSuffix":"a","length":0}]}})"),
      "LISTSTATUS /x");
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].name, "a");
  EXPECT_TRUE((*entries)[0].info.is_folder);
}

TEST(FileStatusTest, AnotherObjectIsAnError) {
  for (const char* const text :
       {R"({"FileStatus":[]})", R"({"FileStatus":{"length":"x"}})",
        R"({"FileStatus":{"length":-1}})", R"({"FileStatus":{"permission":"rwx"}})",
        R"({"FileStatus":{"permission":"77777777777777"}})",
        R"({"FileStatus":{"permission":"-7"}})"}) {
    EXPECT_FALSE(ParseFileStatus(Json::parse(text), "GETFILESTATUS /x").ok()) << text;
  }
  EXPECT_FALSE(ParseFileStatuses(Json::parse(R"({"FileStatuses":{"FileStatus":{}}})"), "x").ok());
}

}  // namespace
}  // namespace muster::files
