#include "muster/tune/scheduler.h"

#include "muster/tune/tune_test_support.h"

namespace muster::tune {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using Kind = SchedulerSpec::Kind;

Trial WithValues(int64_t number, const std::vector<double>& values,
                 TrialState state = TrialState::kComplete) {
  Trial trial = {.number = number, .state = state, .value = values.back()};
  for (size_t i = 0; i < values.size(); ++i) {
    trial.reports.push_back({.resource = static_cast<int64_t>(i) + 1, .value = values[i]});
  }
  return trial;
}

std::string WhyStop(const SchedulerSpec& spec, const History& history) {
  return NewScheduler(spec, {.metric = "loss"})->WhyStop(history, history.back());
}

TEST(SchedulerTest, MedianStopsWhatIsWorseThanHalfOfTheOthers) {
  const SchedulerSpec spec = {.kind = Kind::kMedian, .startup_trials = 3};
  History history = {WithValues(0, {1, 1}), WithValues(1, {2, 1}), WithValues(2, {3, 1})};
  history.push_back(WithValues(3, {2.5}, TrialState::kRunning));
  EXPECT_THAT(WhyStop(spec, history), HasSubstr("worse than half of 3 trials at 1"));
  history.back() = WithValues(3, {2}, TrialState::kRunning);
  EXPECT_THAT(WhyStop(spec, history), IsEmpty());
  // The best value so far counts.
  history.back() = WithValues(3, {1, 5}, TrialState::kRunning);
  EXPECT_THAT(WhyStop(spec, history), IsEmpty());
  history.erase(history.begin());
  history.back() = WithValues(2, {9}, TrialState::kRunning);
  EXPECT_THAT(WhyStop(spec, history), IsEmpty()) << "two trials are too few";
}

TEST(SchedulerTest, AshaLetsTheBestThirdPassARung) {
  const SchedulerSpec spec = {.kind = Kind::kAsha, .min_resource = 1, .factor = 3};
  History history;
  // The first trials pass if they are the best so far.
  history.push_back(WithValues(0, {5}, TrialState::kRunning));
  EXPECT_THAT(WhyStop(spec, history), IsEmpty());
  history.push_back(WithValues(1, {6}, TrialState::kRunning));
  EXPECT_THAT(WhyStop(spec, history), HasSubstr("rung 1: 1 of 2 trials were better"));
  history.push_back(WithValues(2, {4}, TrialState::kRunning));
  EXPECT_THAT(WhyStop(spec, history), IsEmpty());
  // At a resource that is no rung nothing is decided.
  history.push_back(WithValues(3, {9, 9}, TrialState::kRunning));
  EXPECT_THAT(WhyStop(spec, history), IsEmpty());
  // At the rung 3 only trials that came there count.
  history.push_back(WithValues(4, {3, 3, 8}, TrialState::kRunning));
  EXPECT_THAT(WhyStop(spec, history), IsEmpty());
  history.push_back(WithValues(5, {3, 3, std::nan("")}, TrialState::kRunning));
  EXPECT_THAT(WhyStop(spec, history), HasSubstr("rung 3"));
}

TEST(SchedulerTest, HyperbandsLaterBracketsStopLater) {
  const SchedulerSpec spec = {
      .kind = Kind::kHyperband, .min_resource = 1, .max_resource = 9, .factor = 3};
  // 9, 5 and 3 trials of each cycle are in the brackets that begin at 1, 3 and 9.
  int stopped_at_first = 0;
  for (int64_t number = 0; number < 17; ++number) {
    History history;
    for (int64_t other = 0; other < number; ++other) history.push_back(WithValues(other, {1}));
    history.push_back(WithValues(number, {2}, TrialState::kRunning));
    stopped_at_first += WhyStop(spec, history).empty() ? 0 : 1;
  }
  EXPECT_EQ(stopped_at_first, 8);  // all of the first bracket but the first trial
  History history = {WithValues(16, {2, 2, 2, 2, 2, 2, 2, 2, 2}, TrialState::kRunning)};
  EXPECT_THAT(WhyStop(spec, history), IsEmpty());
}

}  // namespace
}  // namespace muster::tune
