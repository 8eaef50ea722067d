#include "muster/launch/slots/slot_table.h"

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launch::slots {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Phase = job::TaskObservation::Phase;

constexpr job::TaskId kTask{job::TaskType::kWorker, 0};
constexpr double kGone = 16;

Slot Running(const std::string& id, int64_t incarnation) {
  Slot slot;
  slot.id = id;
  slot.task = kTask;
  slot.incarnation = incarnation;
  slot.process = StrCat("process of ", id);
  return slot;
}

Slot Ended(const std::string& id, int64_t incarnation) {
  Slot slot = Running(id, incarnation);
  slot.state = Slot::State::kEnded;
  return slot;
}

Slot Asked(const std::string& id, int64_t incarnation) {
  Slot slot = Running(id, incarnation);
  slot.state = Slot::State::kAsked;
  slot.process = "";
  return slot;
}

class SlotTableTest : public ::testing::Test {
 protected:
  void Want(int64_t incarnation) {
    table_->Want({.task = kTask, .incarnation = incarnation});
    started_up_to_ = std::max(started_up_to_, incarnation);
  }
  ProviderAnswer Report(const std::vector<Slot>& slots,
                        const std::vector<EndedProcess>& ended = {}) {
    const ProviderAnswer answer = table_->Take({.provider = "p",
                                                .attempt = attempt_,
                                                .sequence = ++sequence_,
                                                .slots = slots,
                                                .ended = ended},
                                               now_);
    if (keeps_) table_->NoteKept();
    return answer;
  }
  // Another coordinator after the last one.
  void Restart() {
    const SlotMemory memory{.started_up_to = started_up_to_, .may_run = table_->may_run()};
    table_ = std::make_unique<SlotTable>(memory, now_, kGone);
  }
  Admission Waits(const std::string& slot, int64_t incarnation) {
    return table_->Admits(kTask, incarnation, slot, /*runs=*/false);
  }
  Admission Runs(const std::string& slot, int64_t incarnation) {
    return table_->Admits(kTask, incarnation, slot, /*runs=*/true);
  }
  job::TaskObservation Seen() {
    const auto all = table_->Observe(now_);
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? job::TaskObservation{} : all[0];
  }

  double now_ = 100;
  int64_t attempt_ = 1, sequence_ = 0;
  int64_t started_up_to_ = 0;  // as the journal has it
  bool keeps_ = true;          // whether what the table remembers becomes durable
  std::unique_ptr<SlotTable> table_ = std::make_unique<SlotTable>(SlotMemory{}, 100, kGone);
};

TEST_F(SlotTableTest, IsWantedUntilThereIsASlot) {
  EXPECT_THAT(Report({}).wanted, IsEmpty());
  Want(1);
  EXPECT_EQ(Report({}).wanted.size(), 1U);
  EXPECT_EQ(Report({}).wanted.size(), 1U) << "the answer may have been lost";
  EXPECT_THAT(Report({Asked("a", 1)}).wanted, IsEmpty());
  EXPECT_THAT(Report({Running("a", 1)}).wanted, IsEmpty());
  EXPECT_EQ(Seen().phase, Phase::kStarting);
}

TEST_F(SlotTableTest, AnAgentIsLetInOnceItsSlotIsTheOnlyOne) {
  Want(1);
  EXPECT_EQ(Waits("a", 1), Admission::kNotYet);
  Report({});
  EXPECT_EQ(Waits("a", 1), Admission::kNotYet);
  Report({Running("a", 1)});
  EXPECT_EQ(Waits("b", 1), Admission::kNo);
  EXPECT_EQ(Waits("", 1), Admission::kNo);
  EXPECT_EQ(Waits("a", 1), Admission::kYes);
  EXPECT_THAT(Report({Running("a", 1), Running("b", 1)}).kill, ElementsAre("b"));
  EXPECT_EQ(Waits("a", 1), Admission::kYes);
  EXPECT_EQ(Waits("b", 1), Admission::kNo);
}

TEST_F(SlotTableTest, NoAgentIsLetInBeforeThatIsDurable) {
  Want(1);
  Report({});
  Report({Asked("a", 1)});
  EXPECT_EQ(Waits("a", 1), Admission::kNotYet) << "it may not run yet";
  keeps_ = false;
  Report({Running("a", 1)});
  EXPECT_EQ(Waits("a", 1), Admission::kNotYet);
  table_->NoteKept();
  EXPECT_EQ(Waits("a", 1), Admission::kYes);
}

TEST_F(SlotTableTest, TwoSlotsOfWhichNoneWasLetInBothEnd) {
  Want(1);
  Report({});
  EXPECT_THAT(Report({Running("a", 1), Running("b", 1)}).kill, ElementsAre("a", "b"));
  EXPECT_EQ(Waits("a", 1), Admission::kNo);
  EXPECT_EQ(Seen().phase, Phase::kStarting);
  Report({Ended("a", 1), Running("b", 1)});
  EXPECT_EQ(Seen().phase, Phase::kStarting);
  Report({Ended("a", 1), Ended("b", 1)});
  EXPECT_EQ(Seen().phase, Phase::kEnded);
  EXPECT_TRUE(Seen().end.disrupted);
}

TEST_F(SlotTableTest, AnEndIsToldWithWhatThePlatformSaid) {
  Want(1);
  Report({});
  Slot ended = Ended("container_5", 1);
  ended.host = "n1";
  ended.exit_code = -102;
  ended.disrupted = true;
  ended.detail = "preempted";
  Report({ended});
  EXPECT_EQ(Seen().phase, Phase::kEnded);
  EXPECT_TRUE(Seen().end.lost && Seen().end.disrupted);
  EXPECT_EQ(Seen().end.detail, "its slot container_5 on n1 ended with code -102: preempted");
  EXPECT_THAT(Report({ended}).forget, IsEmpty()) << "the journal may not have it yet";
  Want(2);
  EXPECT_THAT(Report({ended}).forget, ElementsAre("container_5"));
}

TEST_F(SlotTableTest, OldAndRepeatedReportsChangeNothing) {
  Want(1);
  Report({});
  const ProviderReport late{
      .provider = "p", .attempt = 1, .sequence = 1, .slots = {Running("x", 1)}};
  const ProviderAnswer answer = table_->Take(late, now_);
  EXPECT_EQ(answer, (ProviderAnswer{.sequence = 1}));
  EXPECT_EQ(Waits("x", 1), Admission::kNotYet);
}

TEST_F(SlotTableTest, AnOlderAttemptIsToldSoAndNothingElse) {
  Want(1);
  attempt_ = 2;
  Report({});
  attempt_ = 1;
  const ProviderAnswer answer = Report({Running("a", 1)});
  EXPECT_TRUE(answer.superseded);
  EXPECT_THAT(answer.wanted, IsEmpty());
  EXPECT_THAT(answer.kill, IsEmpty());
  EXPECT_EQ(Waits("a", 1), Admission::kNotYet);
}

TEST_F(SlotTableTest, WhatAnEarlierAttemptWasToldIsNotWantedAgain) {
  Want(1);
  Report({});
  attempt_ = 2;
  EXPECT_THAT(Report({}).wanted, IsEmpty());
  EXPECT_EQ(Seen().phase, Phase::kEnded);
  EXPECT_TRUE(Seen().end.disrupted);
  // The earlier attempt does it nevertheless.
  EXPECT_THAT(Report({Running("late", 1)}).kill, ElementsAre("late"));
  EXPECT_EQ(Waits("late", 1), Admission::kNo);
}

TEST_F(SlotTableTest, WhatAnEarlierCoordinatorWantedIsNotWantedAgain) {
  Want(1);
  Report({});
  Report({Running("a", 1)});
  Restart();
  Want(1);
  EXPECT_THAT(Report({}).wanted, IsEmpty());
  EXPECT_EQ(Seen().phase, Phase::kStarting) << "its agent may run where nobody looks";
  now_ += kGone;
  EXPECT_EQ(Seen().phase, Phase::kEnded);
  Want(2);
  EXPECT_EQ(Report({}).wanted.size(), 1U);
}

// As when ApplicationMaster and coordinator die while YARN looks for a container.
TEST_F(SlotTableTest, WhatNeverRanIsReplacedAtOnceByTheNextCoordinator) {
  Want(1);
  Report({});
  Report({Asked("a", 1)});
  Restart();
  Want(1);
  EXPECT_THAT(Report({Asked("a", 1)}).kill, ElementsAre("a"));
  EXPECT_EQ(Seen().phase, Phase::kEnded);
  EXPECT_TRUE(Seen().end.disrupted);
  EXPECT_EQ(Waits("a", 1), Admission::kNo);
  Want(2);
  EXPECT_THAT(Report({Running("a", 1)}).kill, ElementsAre("a"));
  EXPECT_EQ(Report({}).wanted.size(), 1U);
}

TEST_F(SlotTableTest, TheEndOfAProcessWhoseSlotOnlyEarlierAttemptsKnow) {
  Want(1);
  Report({});
  Report({Running("a", 1)});
  EXPECT_EQ(Waits("a", 1), Admission::kYes);
  Restart();
  attempt_ = 2;
  EXPECT_THAT(Report({}).wanted, IsEmpty());
  const EndedProcess ended{
      .process = "process of a", .exit_code = 137, .disrupted = false, .detail = "killed"};
  Report({}, {{.process = "another"}, ended});
  EXPECT_EQ(Seen().phase, Phase::kEnded);
  EXPECT_EQ(Seen().end.detail, "its slot process of a ended with code 137: killed");
  EXPECT_FALSE(Seen().end.disrupted);
  EXPECT_EQ(Runs("a", 1), Admission::kNo);
  Want(2);
  EXPECT_EQ(Report({}, {ended}).wanted.size(), 1U);
  EXPECT_THAT(table_->may_run(), IsEmpty());
}

TEST_F(SlotTableTest, WhatRunsIsAdoptedByTheNextCoordinator) {
  Want(1);
  Report({});
  Report({Running("a", 1)});
  EXPECT_EQ(Waits("a", 1), Admission::kYes);
  Restart();
  EXPECT_EQ(Runs("a", 1), Admission::kYes) << "before the provider has said anything";
  Report({Running("a", 1)});
  EXPECT_EQ(Runs("a", 1), Admission::kYes);
  EXPECT_EQ(Seen().phase, Phase::kStarting);
  now_ += kGone;
  Report({});  // it is not seen, but it reports
  EXPECT_EQ(Seen().phase, Phase::kStarting);
}

TEST_F(SlotTableTest, AnAgentThatWaitsForAnEarlierCoordinatorsOrderIsReplaced) {
  Want(1);
  Report({});
  Report({Running("a", 1)});
  Restart();
  Want(1);
  Report({Running("a", 1)});
  EXPECT_EQ(Waits("a", 1), Admission::kNo);
  EXPECT_THAT(Report({Running("a", 1)}).kill, ElementsAre("a"));
  Report({Ended("a", 1)});
  EXPECT_EQ(Seen().phase, Phase::kEnded);
  EXPECT_TRUE(Seen().end.disrupted);
}

TEST_F(SlotTableTest, WhatWasNeverWantedIsGoneWhenItIsKilled) {
  table_->Kill(kTask, 1);
  EXPECT_EQ(Seen().phase, Phase::kEnded);
  Want(1);
  EXPECT_THAT(Report({}).wanted, IsEmpty());
}

TEST_F(SlotTableTest, AKillIsRepeatedUntilTheSlotHasEnded) {
  Want(1);
  Report({});
  Report({Running("a", 1)});
  EXPECT_EQ(Waits("a", 1), Admission::kYes);
  table_->Kill(kTask, 1);
  EXPECT_THAT(Report({Running("a", 1)}).kill, ElementsAre("a"));
  EXPECT_THAT(Report({Running("a", 1)}).kill, ElementsAre("a"));
  EXPECT_EQ(Seen().phase, Phase::kStarting);
  Report({Ended("a", 1)});
  EXPECT_EQ(Seen().phase, Phase::kEnded);
}

TEST_F(SlotTableTest, ASlotOfAnIncarnationThatWasReplacedEnds) {
  Want(2);
  EXPECT_THAT(Report({Running("old", 1)}).kill, ElementsAre("old"));
  EXPECT_EQ(Runs("old", 1), Admission::kNo);
}

// A provider may say what it likes, as often as it likes.
TEST_F(SlotTableTest, SlotsThatNobodyWantedEndAndNothingIsKeptOfThem) {
  Want(1);
  Report({});
  for (int i = 0; i < 3; ++i) {
    std::vector<Slot> slots = {Running("a", 1), Running("beyond", 2), Running("far", 1'000'000),
                               Ended("ended", 3)};
    slots.push_back(Running("other", 1));  // the number of another task's incarnation
    slots.back().task.index = 7 + i;
    const ProviderAnswer answer = Report(slots);
    EXPECT_THAT(answer.kill, ElementsAre("beyond", "far", "other"));
    EXPECT_THAT(answer.forget, ElementsAre("ended"));
    EXPECT_EQ(Seen().incarnation, 1);
  }
  EXPECT_EQ(Waits("beyond", 2), Admission::kNotYet);
  Want(2);  // before any answer wanted it
  EXPECT_THAT(Report({Running("beyond", 2)}).kill, ElementsAre("beyond"));
  EXPECT_NE(Waits("beyond", 2), Admission::kYes);
}

// The whole of a large job in one report, and in each of many.
TEST_F(SlotTableTest, ALargeReportIsReadInOnePass) {
  constexpr int kTasks = 20'000;
  std::vector<Slot> slots;
  for (int i = 0; i < kTasks; ++i) {
    Slot slot = Running(StrCat("s", i), i + 1);
    slot.task.index = i;
    table_->Want({.task = slot.task, .incarnation = slot.incarnation});
    slots.push_back(slot);
  }
  EXPECT_EQ(Report({}).wanted.size(), kTasks);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Report(slots).kill, IsEmpty());
  EXPECT_EQ(table_->Observe(now_).size(), kTasks);
}

TEST_F(SlotTableTest, AfterTheEndEverySlotEndsAndThenTheProvider) {
  Want(1);
  Report({Running("a", 1)});
  table_->SetFinal("succeeded");
  EXPECT_FALSE(table_->emptied());
  const ProviderAnswer answer = Report({Running("a", 1)});
  EXPECT_EQ(answer.final, "succeeded");
  EXPECT_THAT(answer.kill, ElementsAre("a"));
  EXPECT_FALSE(table_->emptied());
  EXPECT_THAT(Report({Ended("a", 1)}).forget, ElementsAre("a"));
  EXPECT_TRUE(table_->emptied());
}

TEST(SlotMessagesTest, PrintBackToWhatTheyWereParsedFrom) {
  Slot slot = Ended("c-1", 3);
  slot.host = "n1";
  slot.exit_code = -100;
  slot.disrupted = true;
  slot.detail = "lost node";
  const ProviderReport report{.provider = "yarn",
                              .attempt = 2,
                              .sequence = 17,
                              .slots = {slot, Running("c-2", 4)},
                              .ended = {{.process = "p", .exit_code = 1, .detail = "it failed"},
                                        {.process = "q", .disrupted = true}}};
  EXPECT_EQ(ReportFromJson(ToJson(report)).value(), report);
  const ProviderAnswer answer{.sequence = 17,
                              .superseded = true,
                              .wanted = {{.task = kTask,
                                          .incarnation = 4,
                                          .port = 12045,
                                          .port_required = true,
                                          .lease_seconds = 10,
                                          .cpus = 1.5,
                                          .memory_bytes = 1 << 30,
                                          .gpus = 1}},
                              .kill = {"a"},
                              .forget = {"b"},
                              .final = "failed"};
  EXPECT_EQ(AnswerFromJson(ToJson(answer)).value(), answer);
}

TEST(SlotMessagesTest, WhatIsNoReportIsRefusedAndNamed) {
  const auto refused = [](const char* text) {
    return std::string(ReportFromJson(Json::parse(text)).status().message());
  };
  EXPECT_THAT(refused(R"({"attempt": 1, "sequence": 1})"), HasSubstr("say all, or none by []"));
  EXPECT_THAT(refused(R"({"sequence": 1, "slots": []})"), HasSubstr("\"attempt\""));
  EXPECT_THAT(refused(R"({"attempt": 1, "slots": []})"), HasSubstr("\"sequence\""));
  const auto with = [&](const std::string& slot) {
    return refused(StrCat(R"({"attempt": 1, "sequence": 1, "slots": [)", slot, "]}").c_str());
  };
  const std::string good =
      R"({"slot": "a", "task": "worker-0", "incarnation": 1, "state": "asked"})";
  EXPECT_EQ(with(good), "");
  EXPECT_THAT(with(StrCat(good, ", ", good)), HasSubstr("twice"));
  EXPECT_THAT(with(R"({"slot": "a", "task": "boss-0", "incarnation": 1, "state": "asked"})"),
              HasSubstr("boss-0"));
  EXPECT_THAT(with(StrCat(R"({"slot": ")", std::string(257, 'a'),
                          R"(", "task": "worker-0", "incarnation": 1, "state": "asked"})")),
              HasSubstr("longer than 256 bytes"));
  EXPECT_THAT(with(R"({"slot": "a", "task": "worker-0", "state": "asked"})"),
              HasSubstr("\"incarnation\""));
  EXPECT_THAT(with(R"({"slot": "a", "task": "worker-0", "incarnation": 1, "state": "odd"})"),
              HasSubstr("'odd'"));
  EXPECT_THAT(with(R"({"task": "worker-0", "incarnation": 1, "state": "asked"})"),
              HasSubstr("\"slot\""));
  EXPECT_THAT(refused(R"({"attempt": 1, "sequence": 1, "slots": [], "ended": [{"exit": 1}]})"),
              HasSubstr("\"process\" is missing"));
}

}  // namespace
}  // namespace muster::launch::slots
