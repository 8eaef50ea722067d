#include "muster/control/journal.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/control/status_json.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::control {
namespace {

using formats::MergePatch;
using formats::ParseJsonObject;

using ::testing::HasSubstr;

constexpr char kPath[] = "job/journal";

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() { EXPECT_TRUE(files_->MakeFolders("job").ok()); }

  std::string Bytes() { return *io::ReadFile(*files_, kPath); }
  void SetBytes(const std::string& bytes) {
    ASSERT_TRUE(io::WriteFileAtomically(*files_, kPath, bytes).ok());
  }
  void Write(const std::vector<Json>& states) {
    const auto journal = *Journal::Open(*files_, kPath);
    for (const Json& state : states) ASSERT_TRUE(journal->Append(state).ok());
  }

  std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
};

const Json kFirst = {{"port", 7}, {"status", {{"phase", "active"}, {"tasks", {{"a", 1}}}}}};
const Json kSecond = {{"port", 7}, {"status", {{"phase", "failed"}, {"tasks", {{"b", 2}}}}}};

TEST_F(JournalTest, TheLastStateIsReadBack) {
  Write({kFirst, kSecond});
  const auto read = ReadJournal(*files_, kPath);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->state, kSecond);
  EXPECT_EQ(read->lines, 2);
  EXPECT_FALSE(read->torn);
}

TEST_F(JournalTest, AnEqualStateWritesNothing) {
  Write({kFirst, kFirst});
  EXPECT_EQ(ReadJournal(*files_, kPath)->lines, 1);
}

TEST_F(JournalTest, EveryCutOfTheLastLineGivesTheStateBeforeIt) {
  Write({kFirst});
  const size_t before = Bytes().size();
  Write({kFirst, kSecond});
  const std::string whole = Bytes();
  for (size_t size = before; size < whole.size(); ++size) {
    const auto read = ParseJournal(whole.substr(0, size), kPath);
    ASSERT_TRUE(read.ok()) << size << ": " << read.status();
    EXPECT_EQ(read->state, kFirst) << size;
    EXPECT_EQ(read->torn, size > before) << size;
  }
}

TEST_F(JournalTest, AFlippedBitInTheMiddleIsAnErrorThatNamesTheLine) {
  Write({kFirst, kSecond, kFirst});
  const std::string whole = Bytes();
  const size_t middle = whole.find('\n') + 1;
  const size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  for (size_t at = middle; at < last; ++at) {
    std::string damaged = whole;
    damaged[at] ^= 1;
    const auto read = ParseJournal(damaged, kPath);
    ASSERT_FALSE(read.ok()) << at;
    EXPECT_TRUE(absl::IsDataLoss(read.status()));
    EXPECT_THAT(std::string(read.status().message()), HasSubstr("job/journal: line 2 "));
  }
}

TEST_F(JournalTest, ATornJournalIsContinued) {
  Write({kFirst, kSecond});
  const std::string whole = Bytes();
  SetBytes(whole.substr(0, whole.size() - 3));
  const auto journal = *Journal::Open(*files_, kPath);
  EXPECT_EQ(journal->state(), kFirst);
  ASSERT_TRUE(journal->Append(kSecond).ok());
  const auto read = ReadJournal(*files_, kPath);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->state, kSecond);
  EXPECT_FALSE(read->torn);
}

TEST_F(JournalTest, AMemberThatIsGoneIsGone) {
  Write({kSecond, {{"port", 8}}});
  EXPECT_EQ(ReadJournal(*files_, kPath)->state, Json({{"port", 8}}));
}

TEST(StatusJsonTest, EveryFieldComesBack) {
  job::JobStatus status;
  status.phase = job::JobPhase::kFailing;
  job::TaskStatus& task = status.tasks[{job::TaskType::kPs, 3}];
  task = {.phase = job::TaskPhase::kStopping,
          .incarnation = 9,
          .not_before = 1.25,
          .restart_after = true,
          .gang = true,
          .stop_reason = "why",
          .cut_off = true,
          .restarts = 2,
          .disruptions = 4,
          .restarts_in_place = 1,
          .recent_restarts = {0.5, 1.5},
          .recent_disruptions = {0.25},
          .last_end = job::TaskEnd{.exit_code = 3,
                                   .signal = 9,
                                   .out_of_memory = true,
                                   .lost = true,
                                   .disrupted = true,
                                   .detail = "detail",
                                   .last_line = "last words",
                                   .at = 7},
          .early_end = job::TaskEnd{.exit_code = 1, .last_line = "KeyError", .at = 6}};
  status.conditions.push_back({"Failed", false, "Reason", "message", 1, 2});
  status.failures.push_back({{job::TaskType::kWorker, 1}, 4, {.exit_code = 1}, true});
  status.failure_message = "m";
  status.next_incarnation = 10;
  status.recent_restarts = {3};
  status.recent_disruptions = {2, 4};
  status.gang_restart = status.delete_sent = true;
  status.clock = 1;
  status.last_monotonic = 2;
  status.last_wall = 3;
  status.clock_id = "boot";
  status.active_since = 4;
  status.ended_at = 5;
  status.progressed = true;
  status.disrupted_at = 0.5;
  status.start_time = 6;
  status.completion_time = 7;
  const auto again = StatusFromJson(ToJson(status), "test");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, status);
}

TEST(StatusJsonTest, WhatIsNoStatusIsRefusedByName) {
  const Json bad = {{"phase", "active"}, {"tasks", {{"worker-1", {{"phase", "flying"}}}}}};
  const auto status = StatusFromJson(bad, "j");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.status().message(), "j: worker-1: \"phase\" 'flying' is unknown");
}

TEST(MergePatchTest, MakesOneOfTheOther) {
  Json from = {{"a", 1}, {"b", {{"c", {1, 2}}, {"d", "x"}}}, {"e", {{"f", 1}}}};
  const Json to = {{"a", 1}, {"b", {{"c", {1}}}}, {"e", 5}, {"g", Json::object()}};
  const Json patch = MergePatch(from, to);
  EXPECT_FALSE(patch.contains("a"));
  from.merge_patch(patch);
  EXPECT_EQ(from, to);
  EXPECT_TRUE(MergePatch(to, to).empty());
}

TEST(ParseObjectTest, HostileTextIsRefused) {
  EXPECT_FALSE(ParseJsonObject(std::string(100000, '['), "x").ok());
  EXPECT_FALSE(ParseJsonObject("{\"a\": \"\xff\"}", "x").ok());
  EXPECT_FALSE(ParseJsonObject("[1]", "x").ok());
  EXPECT_FALSE(ParseJsonObject("{\"a\":", "x").ok());
  EXPECT_TRUE(ParseJsonObject("{\"a\": 1}", "x").ok());
}

}  // namespace
}  // namespace muster::control
