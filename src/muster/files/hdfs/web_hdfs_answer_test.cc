#include "muster/files/hdfs/web_hdfs_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/base/strings.h"

namespace muster::files {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

std::string Exception(const char* name, const char* message) {
  return StrCat(R"({"RemoteException":{"exception":")", name,
                R"(","javaClassName":"org.apache.hadoop.)", name, R"(","message":")", message,
                R"("}})");
}

TEST(WebHdfsAnswerTest, AnExceptionIsAStatus) {
  const struct {
    int http_status;
    const char *exception, *message;
    StatusCode code;
    bool again;
  } cases[] = {
      {404, "FileNotFoundException", "File /x does not exist.", StatusCode::kNotFound, false},
      {403, "AccessControlException", "Permission denied: user=a", StatusCode::kPermissionDenied,
       false},
      {403, "DSQuotaExceededException", "The DiskSpace quota", StatusCode::kResourceExhausted,
       false},
      {403, "FileAlreadyExistsException", "/x is a file", StatusCode::kFailedPrecondition, false},
      {403, "IOException", "rename destination directory is not empty",
       StatusCode::kFailedPrecondition, false},
      {403, "StandbyException", "Operation category READ", StatusCode::kUnavailable, true},
      {403, "SafeModeException", "Cannot create file/x.", StatusCode::kUnavailable, true},
      {403, "IOException", "File /x could only be written to 0 of the 1", StatusCode::kUnavailable,
       true},
      {403, "IOException",
       "Failed to find datanode, suggest to check cluster health. excludeDatanodes=null",
       StatusCode::kUnavailable, true},
      {403, "IOException", "No active nodes contain this block", StatusCode::kUnavailable, true},
      {403, "IOException", "append: lastBlock=blk_1 of src=/x is not sufficiently replicated yet.",
       StatusCode::kUnavailable, true},
      {403, "NotReplicatedYetException", "Not replicated yet: /x", StatusCode::kUnavailable, true},
      {403, "RetriableException", "Namenode is in startup mode", StatusCode::kUnavailable, true},
      {403, "EOFException", "End of File Exception between", StatusCode::kUnavailable, true},
      {500, "NullPointerException", "null", StatusCode::kInternal, false},
      {401, "", "", StatusCode::kUnauthenticated, false},
      {503, "", "", StatusCode::kUnavailable, true},
  };
  for (const auto& each : cases) {
    const WebHdfsVerdict verdict =
        JudgeAnswer(each.http_status, Exception(each.exception, each.message), "OPEN /x");
    EXPECT_EQ(verdict.status.code(), each.code) << verdict.status;
    EXPECT_EQ(verdict.again, each.again) << verdict.status;
    EXPECT_EQ(verdict.other_name_node, std::string(each.exception) == "StandbyException");
    EXPECT_THAT(std::string(ToStd(verdict.status.message())), HasSubstr("OPEN /x: "));
    EXPECT_THAT(std::string(ToStd(verdict.status.message())), HasSubstr(each.message));
  }
}

TEST(WebHdfsAnswerTest, OnlyTheFirstLineOfAMessageIsShown) {
  const auto verdict = JudgeAnswer(403, Exception("IOException", "broken\\n\\tat java"), "OPEN /x");
  EXPECT_EQ(std::string(ToStd(verdict.status.message())), "OPEN /x: IOException: broken");
}

TEST(WebHdfsAnswerTest, WhatIsNoWebHdfsIsSaid) {
  const auto verdict = JudgeAnswer(404, "<html>", "OPEN /x");
  EXPECT_EQ(verdict.status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(ToStd(verdict.status.message())), HasSubstr("no WebHDFS"));
  EXPECT_TRUE(JudgeAnswer(200, "{}", "OPEN /x").status.ok());
}

}  // namespace
}  // namespace muster::files
