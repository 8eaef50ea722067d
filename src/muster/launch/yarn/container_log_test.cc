#include "muster/launch/yarn/container_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/net/http/test_peer.h"

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

std::string NodeAnswer(const std::string& output) {
  return StrCat("HTTP/1.1 200 OK\r\n\r\n", kHead, "LogLength:", output.size(), "\nLogContents:\n",
                output, "\nEnd of LogType");
}

// A job as a test sets it.
struct JobOfTest : ContainerLookup {
  absl::StatusOr<std::optional<ContainerInfo>> FindContainer(const std::string&) override {
    return container;
  }
  bool HasEnded() const override { return ended; }
  bool IsAggregating() override { return false; }
  absl::StatusOr<std::vector<KeptOutput>> ReadKept(const std::string&) override { return kept; }

  std::optional<ContainerInfo> container = {};
  bool ended = false;
  std::vector<KeptOutput> kept = {};
};

// Reads what there is at once.
std::string ReadNow(ContainerLog& log, int64_t offset) {
  const auto piece = log.Read(offset, 1000, /*wait=*/0);
  return piece.ok() ? piece->bytes : StrCat("error: ", ToStd(piece.status().message()));
}

TEST(ContainerLog, TheLastIncarnationMayNeverHaveBeenSeen) {
  const net::ScriptedServer node({net::ScriptedServer::Answer(NodeAnswer("first\n"))});
  JobOfTest job;
  job.container = {.node = node.authority(), .id = "container_2", .incarnation = 1};
  ContainerLog log("worker-0", job);
  EXPECT_EQ(ReadNow(log, 0), "first\n");
  job.container.reset();
  job.ended = true;
  job.kept = {{.incarnation = 1, .bytes = "first\nlast\n"},
              {.incarnation = 2, .bytes = "second\n"}};
  EXPECT_EQ(ReadNow(log, 6), "last\nsecond\n");
}

TEST(ContainerLog, AnOutputThatItsNodeMovesIsReadWhereItIsKept) {
  std::string cut = NodeAnswer("first\nlast\n");
  cut.resize(cut.find("last"));
  const net::ScriptedServer node({net::ScriptedServer::Answer(cut)});
  JobOfTest job;
  job.container = {.node = node.authority(), .id = "container_2", .incarnation = 1};
  job.ended = true;
  job.kept = {{.incarnation = 1, .bytes = "first\nlast\n"}};
  ContainerLog log("worker-0", job);
  EXPECT_EQ(ReadNow(log, 0), "first\nlast\n");
}

}  // namespace
}  // namespace muster::launch::yarn
