#include "muster/tune/population.h"

#include <algorithm>

#include "muster/tune/sampler.h"
#include "muster/tune/tune_test_support.h"

namespace muster::tune {
namespace {

constexpr int kMembers = 10, kIntervals = 40;

StudySpec PbtSpec(const std::string& space, uint64_t seed = 1) {
  return {.space = TestSpace(space),
          .goal = {.metric = "loss"},
          .sampler = {.kind = SamplerSpec::Kind::kRandom},
          .scheduler = {.kind = SchedulerSpec::Kind::kPbt, .population = kMembers},
          .budget = {.trials = kMembers * kIntervals},
          .seed = seed};
}

// A model that is far from its best weights: an interval brings it nearer by its rate, but never
// nearer than its rate. Whatever fixed rate it has, after kIntervals it is at least
// max(kFar - kIntervals * rate, rate) away, which is the least with kBestFixed.
constexpr double kFar = 10, kBestFixed = kFar / (kIntervals + 1);
double TrainToy(double distance, double rate) { return std::max(distance - rate, rate); }

// Runs the study of the toy, one trial after the other. Returns the best distance.
double RunToy(Study& study) {
  std::vector<double> distances;  // by trial, at its end
  std::vector<Json> events;
  while (const auto number = study.Ask(0, &events)) {
    const Trial trial = study.history()[static_cast<size_t>(*number)];
    const int64_t parent = trial.origin.parent;
    const double before = parent < 0 ? kFar : distances[static_cast<size_t>(parent)];
    distances.push_back(TrainToy(before, trial.point[0]));
    study.Tell(
        {.trial = *number, .has_value = true, .last = {.resource = 1, .value = distances.back()}},
        0, &events);
  }
  return *FindBest(study.history(), study.spec().goal)->value;
}

TEST(PopulationTest, FindsAScheduleThatNoFixedValueReaches) {
  double fixed = kFar;
  for (int i = 0; i <= 10'000; ++i) {
    const double rate = 0.001 * std::pow(1000, i / 10'000.0);
    double distance = kFar;
    for (int interval = 0; interval < kIntervals; ++interval) distance = TrainToy(distance, rate);
    fixed = std::min(fixed, distance);
  }
  ASSERT_GE(fixed, kBestFixed * (1 - 1e-9));
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto study = Study::Create(PbtSpec("rate: {loguniform: [0.001, 1]}\n", seed));
    ASSERT_TRUE(study.ok());
    EXPECT_LT(RunToy(**study), kBestFixed / 2) << "seed " << seed;
    EXPECT_EQ((*study)->history().size(), static_cast<size_t>(kMembers * kIntervals));
  }
}

TEST(PopulationTest, AllAreComparedAtTheirGeneration) {
  const auto study = Study::Create(PbtSpec("rate: {loguniform: [0.001, 1]}\n"));
  RunToy(**study);
  const History& history = (*study)->history();
  for (const Trial& trial : history) {
    const Origin& origin = trial.origin;
    ASSERT_EQ(origin.member, trial.number % kMembers);
    ASSERT_EQ(origin.generation, trial.number / kMembers);
    ASSERT_EQ(origin.parent < 0, origin.generation == 0);
    if (origin.parent < 0) continue;
    const Trial& parent = history[static_cast<size_t>(origin.parent)];
    ASSERT_EQ(parent.origin.generation, origin.generation - 1);
    // The two worst of ten continue from one of the two best; the others from themselves.
    std::vector<double> values;
    for (const Trial& other : history) {
      if (other.origin.generation == origin.generation - 1) values.push_back(*other.value);
    }
    std::ranges::sort(values);
    if (parent.origin.member == origin.member) {
      EXPECT_EQ(parent.point, trial.point);
      EXPECT_LE(*parent.value, values[kMembers - 2]);
    } else {
      EXPECT_LE(*parent.value, values[1]);
    }
  }
}

// The population's trials of one generation with these values, not a number for a failed one.
History Generation(const std::vector<double>& values) {
  History history;
  for (const double value : values) {
    const auto number = static_cast<int64_t>(history.size());
    Trial trial = {.number = number,
                   .point = {0.1},
                   .origin = {.member = number},
                   .state = TrialState::kComplete,
                   .value = value};
    if (std::isnan(value))
      trial = {.number = number,
               .point = {0.1},
               .origin = {.member = number},
               .state = TrialState::kFailed};
    history.push_back(trial);
  }
  return history;
}

std::optional<Successor> NextOf(const History& history, int population) {
  static const Space space = TestSpace("rate: {loguniform: [0.001, 1]}\n");
  const SchedulerSpec spec = {.kind = SchedulerSpec::Kind::kPbt, .population = population};
  return Population(spec, space, {.metric = "loss"}, 1).Next(history);
}

TEST(PopulationTest, WhatHasNoValueIsReplaced) {
  // One of five is replaced, and so is each that failed.
  for (size_t bad = 0; bad < 5; ++bad) {
    std::vector<double> values = {1, 2, 3, 4, 5};
    values[bad] = std::nan("");
    const History history = Generation(values);
    const auto next = NextOf(history, 5);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->member, 0);
    EXPECT_EQ(next->parent, bad == 0 ? 1 : 0);
  }
  // Where all failed, the member begins anew.
  const double none = std::nan("");
  const auto next = NextOf(Generation({none, none, none}), 3);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->parent, -1);
}

TEST(PopulationTest, TrialsInParallelWaitForNoOther) {
  History history = Generation({3, 2, 1, 4});
  for (Trial& trial : history) trial.state = TrialState::kRunning;
  EXPECT_FALSE(NextOf(history, 4)) << "all run";
  EXPECT_TRUE(NextOf(history, 5)) << "a fifth member begins";
  history[2].state = TrialState::kComplete;
  const auto next = NextOf(history, 4);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->member, 2);
  EXPECT_EQ(next->parent, 2) << "there is nobody to compare with";
  // A member that is ahead is compared as it was in this generation.
  history[3].state = TrialState::kComplete;
  history.push_back(
      {.number = 4, .point = {0.1}, .origin = {.member = 2, .generation = 1, .parent = 2}});
  const auto other = NextOf(history, 4);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->member, 3);
  EXPECT_EQ(other->parent, 2) << "the worse one of the two continues from the better one";
}

TEST(PopulationTest, ExploredValuesStayInTheSpace) {
  StudySpec spec = PbtSpec(
      "x: {uniform: [-1, 1]}\n"
      "size: {int: [16, 256], step: 16}\n"
      "kind: {choice: [a, b, c]}\n"
      "depth: {int: [1, 4], when: {kind: b}}\n");
  const auto study = Study::Create(spec);
  std::vector<Json> events;
  int changed[4] = {};
  while (const auto number = (*study)->Ask(0, &events)) {
    const Trial trial = (*study)->history()[static_cast<size_t>(*number)];
    for (size_t i = 0; i < 4; ++i) {
      ASSERT_EQ(IsAbsent(trial.point[i]), !spec.space.Exists(i, trial.point));
    }
    ASSERT_TRUE(ParsePoint(spec.space, PointJson(spec.space, trial.point)).ok());
    ASSERT_EQ(static_cast<int>(trial.point[1]) % 16, 0);
    const int64_t parent = trial.origin.parent;
    if (parent >= 0) {
      const Point& before = (*study)->history()[static_cast<size_t>(parent)].point;
      for (size_t i = 0; i < 4; ++i) changed[i] += before[i] != trial.point[i] ? 1 : 0;
    }
    (*study)->Tell({.trial = *number,
                    .has_value = true,
                    .last = {.value = TestValue({trial.point[0], 1, 0}, 1)}},
                   0, &events);
  }
  for (const int count : changed) EXPECT_GT(count, 20);
}

TEST(PopulationTest, AJournalWithAWrongParentIsDamaged) {
  const auto study = Study::Create(PbtSpec("rate: {loguniform: [0.001, 1]}\n"));
  const Json first = {{"event", "trial"}, {"trial", 0}, {"point", {{"rate", 0.1}}}, {"member", 0}};
  ASSERT_TRUE((*study)->Apply(first).ok());
  for (const char* const wrong : {"member", "parent"}) {
    Json second = first;
    second["trial"] = 1;
    second[wrong] = 7;
    EXPECT_TRUE(absl::IsDataLoss((*study)->Apply(second))) << wrong;
  }
}

}  // namespace
}  // namespace muster::tune
