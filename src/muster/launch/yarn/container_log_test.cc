#include "muster/launch/yarn/container_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::launch::yarn {
namespace {

const std::string kHead =
    "Container: container_1_0001_01_000002 on n1:8041\nLogAggregationType: LOCAL\n"
    "====\nLogType:stdout\nLogLastModifiedTime:Thu Nov 26 02:37:46 +0000 2026\n";

TEST(ParseContainer, HasNodeAndId) {
  const auto found = ParseContainer("n1:8042 container_1_0001_01_000002");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->node, "n1:8042");
  EXPECT_EQ(found->id, "container_1_0001_01_000002");
  EXPECT_FALSE(ParseContainer("").has_value());
  EXPECT_FALSE(ParseContainer("host b").has_value());
}

TEST(ParseLogTail, TakesTheBytesBetweenHeadAndFoot) {
  const auto tail = ParseLogTail(kHead + "LogLength:6\nLogContents:\nab\ncd\nEnd of LogType", 100);
  ASSERT_TRUE(tail.ok()) << tail.status();
  EXPECT_EQ(tail->bytes, "ab\ncd\n");
  EXPECT_EQ(tail->length, 6);
}

TEST(ParseLogTail, HasTheLastBytesOfALongFile) {
  const auto tail = ParseLogTail(kHead + "LogLength:1000\nLogContents:\n999\nEnd", 4);
  ASSERT_TRUE(tail.ok()) << tail.status();
  EXPECT_EQ(tail->bytes, "999\n");
  EXPECT_EQ(tail->length, 1000);
}

TEST(ParseLogTail, TheOutputMayLookLikeAHead) {
  const std::string output = "\nLogLength:3\nLogContents:\n";
  const auto tail = ParseLogTail(
      kHead + "LogLength:" + std::to_string(output.size()) + "\nLogContents:\n" + output, 100);
  ASSERT_TRUE(tail.ok()) << tail.status();
  EXPECT_EQ(tail->bytes, output);
}

TEST(ParseLogTail, RefusesOtherAnswers) {
  for (const char* const answer :
       {"", "<html>", "\nLogContents:\nabc", "\nLogLength:x\nLogContents:\nabc",
        "\nLogLength:-3\nLogContents:\nabc"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseLogTail(answer, 10).status())) << answer;
  }
  EXPECT_TRUE(absl::IsUnavailable(ParseLogTail("\nLogLength:9\nLogContents:\nabc", 10).status()));
}

}  // namespace
}  // namespace muster::launch::yarn
