#include "muster/tune/study.h"

#include <map>
#include <set>

#include "muster/base/simulation.h"
#include "muster/io/memory_file_system.h"
#include "muster/tune/study_journal.h"
#include "muster/tune/tune_test_support.h"

namespace muster::tune {
namespace {

using testing::HasSubstr;

constexpr int64_t kEpochs = 4;

std::string PrintHistory(const StudySpec& spec, const History& history) {
  std::string text;
  for (const Trial& trial : history) {
    text += StrCat(trial.number, " ", PointJson(spec.space, trial.point).dump(), " ",
                   StateName(trial.state), " ", trial.value.value_or(-1), " after ",
                   trial.reports.size(), " from ", trial.origin.parent, "\n");
  }
  return text;
}

// Runs a study whose process is killed now and then, also between an event and its sync, where
// trials begin again. Returns its history, and how often it was killed.
class StudyHistory : SimulatedHistory {
 public:
  StudyHistory(uint64_t seed, bool with_deaths, StudySpec spec)
      : SimulatedHistory(seed),
        random_(seed, RandomPurpose::kSampleData, 0),
        spec_(std::move(spec)),
        with_deaths_(with_deaths) {}

  std::string Run() {
    while (violation_.empty()) {
      auto study = Study::Create(spec_);
      for (const Json& event : journal_) {
        if (!(*study)->Apply(event).ok()) Violated(StrCat("replay: refused ", event.dump()));
      }
      (*study)->RequeueRunning();
      if (RunUntilDeath(**study)) {
        history_ = PrintHistory(spec_, (*study)->history());
        break;
      }
    }
    return violation_;
  }
  const std::string& history() const { return history_; }
  int deaths() const { return deaths_; }

 private:
  // Whether the events survive. If not, the process is dead.
  bool Sync(const std::vector<Json>& events) {
    if (with_deaths_ && random_.Below(10) == 0) {
      ++deaths_;
      if (random_.Below(2) == 0) return false;  // before the sync
      journal_.insert(journal_.end(), events.begin(), events.end());
      return false;
    }
    journal_.insert(journal_.end(), events.begin(), events.end());
    return true;
  }

  // One trial after the other. Whether the study came to its end.
  bool RunUntilDeath(Study& study) {
    while (true) {
      std::vector<Json> events;
      const auto number = study.Ask(0, &events);
      if (!Sync(events)) return false;
      if (!number) return true;
      const Trial trial = study.history()[static_cast<size_t>(*number)];
      if (ended_.contains(*number)) Violated(StrCat("twice: trial ", *number, " ran again"));
      // A trial continues from its last checkpoint.
      const int64_t first = trial.reports.empty() ? 1 : trial.reports.back().resource;
      Outcome outcome = {.trial = *number, .has_value = true};
      for (int64_t epoch = first; epoch <= kEpochs; ++epoch) {
        outcome.last = {.resource = epoch, .value = TestValue(trial.point, epoch)};
        if (epoch == kEpochs) break;
        events.clear();
        const std::string why = study.AddReport(*number, outcome.last, 0, &events);
        if (!Sync(events)) return false;
        if (why.empty()) continue;
        outcome.state = TrialState::kStopped;
        break;
      }
      events.clear();
      study.Tell(outcome, 0, &events);
      if (!Sync(events)) return false;
      ended_.insert(*number);
    }
  }

  RandomStream random_;
  const StudySpec spec_;
  const bool with_deaths_;
  std::vector<Json> journal_;
  std::set<int64_t> ended_;
  std::string history_;
  int deaths_ = 0;
};

TEST(StudyTest, AStudyThatIsKilledHasTheSameTrials) {
  for (const auto sampler : {SamplerSpec::Kind::kRandom, SamplerSpec::Kind::kTpe}) {
    for (const auto scheduler : {SchedulerSpec::Kind::kNone, SchedulerSpec::Kind::kAsha,
                                 SchedulerSpec::Kind::kMedian, SchedulerSpec::Kind::kPbt}) {
      StudySpec spec = TestStudySpec();
      spec.sampler.kind = sampler;
      spec.scheduler = {.kind = scheduler, .factor = 2, .population = 5};
      StudyHistory undisturbed(1, /*with_deaths=*/false, spec);
      ASSERT_EQ(undisturbed.Run(), "");
      int deaths = 0;
      for (uint64_t seed = 1; seed <= 20; ++seed) {
        StudyHistory killed(seed, /*with_deaths=*/true, spec);
        ASSERT_EQ(killed.Run(), "") << "seed " << seed;
        ASSERT_EQ(killed.history(), undisturbed.history()) << "seed " << seed;
        deaths += killed.deaths();
      }
      EXPECT_GT(deaths, 50);
    }
  }
}

TEST(StudyTest, BudgetsEndAStudy) {
  StudySpec spec = TestStudySpec();
  spec.budget = {.records = 1000, .seconds = 60};
  auto study = *Study::Create(spec);
  std::vector<Json> events;
  ASSERT_EQ(study->Ask(0, &events), 0);
  study->Tell({.trial = 0, .has_value = true, .last = {.value = 1, .records = 600}}, 1, &events);
  ASSERT_EQ(study->Ask(1, &events), 1);
  EXPECT_EQ(study->AddReport(1, {.resource = 1, .value = 1, .records = 400}, 2, &events), "");
  EXPECT_FALSE(study->Ask(2, &events));
  EXPECT_THAT(study->end(), HasSubstr("1000 records were read"));
  EXPECT_THAT(study->AddReport(1, {.resource = 2, .value = 1}, 61, &events),
              HasSubstr("budget: 1m"));
}

TEST(StudyTest, FiveFailuresAtTheBeginningEndAStudyWithTheFirstCause) {
  auto study = *Study::Create(TestStudySpec());
  std::vector<Json> events;
  for (int64_t trial = 0; trial < 5; ++trial) {
    ASSERT_EQ(study->Ask(0, &events), trial);
    study->Tell({.trial = trial, .state = TrialState::kFailed, .error = StrCat("cause ", trial)}, 0,
                &events);
  }
  EXPECT_FALSE(study->Ask(0, &events));
  EXPECT_THAT(ToStd(study->status().message()), HasSubstr("trial 0 with: cause 0"));
}

TEST(StudyTest, EventsThatDoNotFollowAreDamage) {
  auto study = *Study::Create(TestStudySpec());
  for (const char* const text :
       {R"({"event": "what"})", R"({"event": "end", "trial": 0, "state": "complete"})",
        R"({"event": "trial", "trial": 1, "point": {}})", R"({"event": "report", "trial": -1})",
        R"({"event": "trial", "trial": 0, "point": {"w": 1}})", R"({})"}) {
    EXPECT_TRUE(absl::IsDataLoss(study->Apply(Json::parse(text)))) << text;
  }
}

class StudyJournalTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<StudyJournal>> Open(const Json& search = {{"seed", 1}}) {
    return StudyJournal::Open(*files_, clock_, "study.log", search, TestStudySpec());
  }

  const std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
  FakeClock clock_;
};

TEST_F(StudyJournalTest, ContinuesWithTheTrialThatWasRunning) {
  Point second;
  {
    const auto journal = *Open();
    const auto first = *journal->Next(nullptr);
    const Outcome ended = {
        .trial = first->number, .has_value = true, .last = {.value = std::nan("")}};
    second = (*journal->Next(&ended))->point;
    EXPECT_EQ(*journal->AddReport(1, {.resource = 1, .value = 3}), "");
  }
  const auto journal = *Open();
  EXPECT_EQ(journal->ended_before(), 1);
  const auto again = *journal->Next(nullptr);
  EXPECT_EQ(again->number, 1);
  EXPECT_EQ(again->point[0], second[0]);
  EXPECT_EQ(again->reports.size(), 1U);
  EXPECT_EQ((*journal->Next(nullptr))->number, 2);
  EXPECT_TRUE(std::isnan(*journal->GetSnapshot().history[0].value));
}

TEST_F(StudyJournalTest, AnotherSearchIsRefusedByWhatDiffers) {
  const auto parse = [](const char* text) { return Json::parse(text); };
  ASSERT_TRUE(Open(parse(R"({"space": {"a": {"int": [1, 2]}, "b": 1, "c": 2}, "seed": 1})")).ok());
  const auto why = [&](const char* text) {
    const auto refused = Open(parse(text));
    EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()));
    return std::string(ToStd(refused.status().message()));
  };
  EXPECT_THAT(why(R"({"space": {"a": {"int": [1, 3]}, "c": 2, "d": 3}, "seed": 2})"),
              HasSubstr("begun with another 'space', 'seed': space.a was {\"int\":[1,2]}, and is "
                        "{\"int\":[1,3]} now; space.b was 1, and is absent now; space.d was "
                        "absent, and is 3 now; seed was 1, and is 2 now; give another"));
  EXPECT_THAT(why(R"({"space": {"b": 1, "a": {"int": [1, 2]}, "c": 2}, "seed": 1})"),
              HasSubstr("another 'space': the parameters of the space stand in another order;"));
}

}  // namespace
}  // namespace muster::tune
