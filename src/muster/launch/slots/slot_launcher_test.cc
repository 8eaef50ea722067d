#include "muster/launch/slots/slot_launcher.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::launch::slots {
namespace {

constexpr job::TaskId kWorker0{job::TaskType::kWorker, 0};
constexpr char kRecord[] = "job/slots.json";

class SlotLauncherTest : public ::testing::Test {
 protected:
  SlotLauncherTest() {
    EXPECT_TRUE(files_.MakeFolders("job").ok());
    Restart();
  }
  void Restart() {
    launcher_ = *SlotLauncher::Create({.files = &files_,
                                       .clock = &clock_,
                                       .record_path = kRecord,
                                       .started_up_to = started_up_to_,
                                       .lease_seconds = 10});
  }
  absl::StatusOr<Json> Report(const std::vector<Slot>& slots = {}) {
    return launcher_->Route().handle(ToJson(
        ProviderReport{.provider = "p", .attempt = 1, .sequence = ++sequence_, .slots = slots}));
  }

  FakeClock clock_;
  const std::unique_ptr<io::FileSystem> memory_ = io::NewMemoryFileSystem();
  io::FaultFileSystem files_{*memory_};
  std::unique_ptr<SlotLauncher> launcher_;
  int64_t sequence_ = 0;
  int64_t started_up_to_ = 0;  // as the journal has it
};

TEST_F(SlotLauncherTest, WhatTheJournalHasIsWantedOnce) {
  launcher_->Start({.task = kWorker0,
                    .incarnation = 7,
                    .port = 12045,
                    .port_required = true,
                    .lease_seconds = 20});
  const auto answer = Report();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ((*answer)["wanted"], (Json{{{"task", "worker-0"},
                                        {"incarnation", 7},
                                        {"lease_seconds", 20.0},
                                        {"port", 12045},
                                        {"port_required", true}}}));
  EXPECT_TRUE(absl::IsNotFound(io::ReadFile(files_, kRecord).status())) << "nobody may run yet";
  started_up_to_ = 7;
  Restart();
  launcher_->Start({.task = kWorker0, .incarnation = 7});
  EXPECT_EQ(Report().value()["wanted"], Json::array());
}

TEST_F(SlotLauncherTest, WhoMayRunIsDurableBeforeItIsLetIn) {
  launcher_->Start({.task = kWorker0, .incarnation = 7});
  ASSERT_TRUE(Report().ok());
  const Slot slot{.id = "a", .task = kWorker0, .incarnation = 7, .process = "p-1"};
  files_.FailNth(io::FileOperation::kRename, 1, absl::ResourceExhaustedError("the disk is full"));
  EXPECT_TRUE(absl::IsResourceExhausted(Report({slot}).status()));
  EXPECT_EQ(launcher_->Admits(kWorker0, 7, "a", false), control::Admission::kNotYet);
  ASSERT_TRUE(Report({slot}).ok());
  EXPECT_EQ(io::ReadFile(files_, kRecord).value(),
            "{\"format\":3,\"may_run\":[{\"task\":\"worker-0\",\"incarnation\":7,"
            "\"process\":\"p-1\"}]}\n");
  EXPECT_EQ(launcher_->Admits(kWorker0, 7, "a", false), control::Admission::kYes);
  Restart();
  EXPECT_EQ(launcher_->Admits(kWorker0, 7, "a", true), control::Admission::kYes);
}

// A later attempt has taken the journal, and then what the record was.
TEST_F(SlotLauncherTest, ACoordinatorWhoseJournalIsGoneLetsNobodyIn) {
  constexpr char kJournal[] = "job/journal-1";
  ASSERT_TRUE(io::WriteFileAtomically(files_, kJournal, "").ok());
  launcher_ = *SlotLauncher::Create(
      {.files = &files_, .clock = &clock_, .record_path = kRecord, .journal_path = kJournal});
  launcher_->Start({.task = kWorker0, .incarnation = 7});
  ASSERT_TRUE(Report().ok());
  ASSERT_TRUE(files_.Rename(kJournal, "job/journal-2").ok());
  const Slot slot{.id = "a", .task = kWorker0, .incarnation = 7};
  EXPECT_TRUE(absl::IsNotFound(Report({slot}).status()));
  EXPECT_EQ(launcher_->Admits(kWorker0, 7, "a", false), control::Admission::kNotYet);
}

TEST_F(SlotLauncherTest, ADamagedRecordIsAnErrorThatNamesIt) {
  for (const char* const text :
       {"", "{\"format\":2,\"may_run\":[]}", "{\"format\":3,\"may_run\":\"x\"}",
        "{\"format\":3,\"may_run\":[{\"task\":\"boss-1\"}]}"}) {
    ASSERT_TRUE(io::WriteFileAtomically(files_, kRecord, text).ok());
    const auto launcher = SlotLauncher::Create(
        {.files = &files_, .clock = &clock_, .record_path = kRecord, .lease_seconds = 10});
    EXPECT_TRUE(absl::IsInvalidArgument(launcher.status())) << text;
    EXPECT_THAT(std::string(launcher.status().message()), ::testing::HasSubstr(kRecord));
  }
}

TEST_F(SlotLauncherTest, KnowsWhatThePlatformHasNotGivenYet) {
  launcher_->Start({.task = kWorker0, .incarnation = 7});
  EXPECT_TRUE(launcher_->LacksProcess(kWorker0, 7));
  ASSERT_TRUE(Report().ok());
  Slot slot{.id = "a", .task = kWorker0, .incarnation = 7, .state = Slot::State::kAsked};
  ASSERT_TRUE(Report({slot}).ok());
  EXPECT_TRUE(launcher_->LacksProcess(kWorker0, 7));
  slot.process = "p-1";  // it is being started
  ASSERT_TRUE(Report({slot}).ok());
  EXPECT_FALSE(launcher_->LacksProcess(kWorker0, 7));
  slot.state = Slot::State::kRunning;
  ASSERT_TRUE(Report({slot}).ok());
  EXPECT_FALSE(launcher_->LacksProcess(kWorker0, 7));
  slot.state = Slot::State::kEnded;
  ASSERT_TRUE(Report({slot}).ok());
  EXPECT_FALSE(launcher_->LacksProcess(kWorker0, 7));
  EXPECT_FALSE(launcher_->LacksProcess(kWorker0, 8)) << "nobody wants it";
  launcher_->Start({.task = kWorker0, .incarnation = 9});
  launcher_->Kill(kWorker0, 9);
  EXPECT_FALSE(launcher_->LacksProcess(kWorker0, 9));
}

TEST_F(SlotLauncherTest, SaysWhatTheProviderGives) {
  EXPECT_EQ(launcher_->DescribeProcess(), "process");
  const ProviderReport report{
      .provider = "yarn", .gives = "container of YARN's queue root.q", .attempt = 1, .sequence = 1};
  EXPECT_EQ(ReportFromJson(ToJson(report)).value(), report);
  ASSERT_TRUE(launcher_->Route().handle(ToJson(report)).ok());
  EXPECT_EQ(launcher_->DescribeProcess(), report.gives);
}

TEST_F(SlotLauncherTest, SaysThatItDoesNotSeeEnds) {
  EXPECT_FALSE(launcher_->traits().sees_ends);
  EXPECT_EQ(launcher_->traits().lease_seconds, 10);
}

}  // namespace
}  // namespace muster::launch::slots
