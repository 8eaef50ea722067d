#include "muster/tune/search_file.h"

#include "muster/tune/command_objective.h"
#include "muster/tune/importance.h"
#include "muster/tune/tune_test_support.h"

namespace muster::tune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kSearch[] = R"(
model: adult.yaml
train: data/part-*
eval: [test/a, test/b]
flags: [--epochs, "3"]
space:
  train.batch_size: {choice: [64, 128]}
metric: {maximize: auc}
sampler: {tpe: {startup_trials: 5}}
scheduler: {hyperband: {max_resource: 9}}
budget: {trials: 30, time: 10m}
seed: 4
)";

std::string RefusalOf(const std::string& text, bool is_of_command = false) {
  return std::string(ToStd(ParseSearchFile(text, "search.yaml", is_of_command).status().message()));
}

TEST(SearchFileTest, IsRead) {
  const auto search = ParseSearchFile(kSearch, "search.yaml", false);
  ASSERT_TRUE(search.ok()) << search.status();
  EXPECT_THAT(search->train, ElementsAre("data/part-*"));
  EXPECT_THAT(search->eval, ElementsAre("test/a", "test/b"));
  EXPECT_THAT(search->flags, ElementsAre("--epochs", "3"));
  const StudySpec& study = search->study;
  EXPECT_EQ(study.space.parameters.size(), 1U);
  EXPECT_TRUE(study.goal.maximize);
  EXPECT_EQ(study.sampler.startup_trials, 5);
  EXPECT_EQ(study.scheduler.kind, SchedulerSpec::Kind::kHyperband);
  EXPECT_EQ(study.scheduler.max_resource, 9);
  EXPECT_EQ(study.budget.trials, 30);
  EXPECT_EQ(study.budget.seconds, 600);
  EXPECT_EQ(study.seed, 4U);
  EXPECT_EQ(SearchJson(*search, {}), SearchJson(*ParseSearchFile(kSearch, "b", false), {}));
}

TEST(SearchFileTest, WrongFilesAreRefused) {
  const std::string space = "space: {x: {uniform: [0, 1]}}\n";
  const std::string metric = "metric: {minimize: loss}\n";
  EXPECT_THAT(RefusalOf(space + metric), HasSubstr("a command after --"));
  EXPECT_THAT(RefusalOf("model: a\n" + space + metric, true), HasSubstr("model"));
  EXPECT_THAT(RefusalOf(space + "metric: loss\n", true), HasSubstr("metric"));
  EXPECT_THAT(RefusalOf(space + "metric: {minimize: a, maximize: b}\n", true),
              HasSubstr("must be {maximize: METRIC}"));
  EXPECT_THAT(RefusalOf(space + metric + "sampler: tpa\n", true), HasSubstr("did you mean 'tpe'"));
  EXPECT_THAT(RefusalOf(space + metric + "scheduler: hyperband\n", true),
              HasSubstr("needs what a whole trial uses"));
  EXPECT_THAT(RefusalOf(space + metric + "budget: {time: soon}\n", true),
              HasSubstr("'soon' is no time"));
  EXPECT_THAT(RefusalOf(metric, true), HasSubstr("space"));
  EXPECT_THAT(RefusalOf("space:\n  x: {uniform: [0, 1]}\n" + metric + "sampler: grid\n", true),
              HasSubstr("search.yaml:2: space.x: a grid cannot try all numbers of a range; say how "
                        "many, such as points: 5"));
  EXPECT_THAT(
      RefusalOf("space: {x: {int: [1, 9999]}, y: {int: [1, 9999]}}\n" + metric + "sampler: grid\n",
                true),
      HasSubstr("search.yaml:1: space: the grid has over 1000000 points"));
}

TEST(SearchFileTest, PopulationBasedTrainingIsReadAndChecked) {
  const std::string command = "space: {x: {uniform: [0, 1]}}\nmetric: {minimize: loss}\n";
  const std::string model = "model: a.yaml\ntrain: b\neval: c\n" + command;
  const std::string given = "scheduler: {pbt: {population: 4, interval: 500, truncation: 0.25}}\n";
  const auto search = ParseSearchFile(model + given, "search.yaml", false);
  ASSERT_TRUE(search.ok()) << search.status();
  EXPECT_EQ(search->study.sampler.kind, SamplerSpec::Kind::kRandom);
  const SchedulerSpec& spec = search->study.scheduler;
  EXPECT_EQ(spec.kind, SchedulerSpec::Kind::kPbt);
  EXPECT_EQ(spec.population, 4);
  EXPECT_EQ(spec.interval, 500);
  EXPECT_EQ(spec.truncation, 0.25);
  EXPECT_EQ(spec.resample, 0.25);
  EXPECT_EQ(SearchJson(*search, {})["scheduler"]["pbt"]["interval"], 500);
  EXPECT_TRUE(ParseSearchFile(command + "scheduler: pbt\n", "b", true).ok());
  EXPECT_THAT(RefusalOf(model + "scheduler: pbt\n"), HasSubstr("{pbt: {interval: 20000}}"));
  EXPECT_THAT(RefusalOf(command + given, true), HasSubstr("a command ends its trial itself"));
  EXPECT_THAT(RefusalOf(model + given + "sampler: grid\n"), HasSubstr("must be random"));
  EXPECT_THAT(RefusalOf(model + "scheduler: {pbt: {population: 1, interval: 9}}\n"),
              HasSubstr("population"));
}

TEST(PlaceholdersTest, AreFilledAndChecked) {
  const Space space = TestSpace("lr: {uniform: [0, 1]}\nunits: {choice: [[8, 4]]}\n");
  const std::vector<std::string> words = {"train", "--lr={lr}", "{units}", R"({"a": {{1}}})"};
  EXPECT_TRUE(CheckPlaceholders(words, space).ok());
  EXPECT_THAT(FillPlaceholders(words, space, {0.25, 0}),
              ElementsAre("train", "--lr=0.25", "[8,4]", R"({"a": {1}})"));
  EXPECT_THAT(ToStd(CheckPlaceholders({"{lr}"}, space).message()),
              HasSubstr("space.units: the command has no {units}"));
  EXPECT_THAT(ToStd(CheckPlaceholders({"{lr}", "{unit}"}, space).message()),
              HasSubstr("did you mean 'units'"));
}

TEST(ImportanceTest, TheParameterThatDecidesIsTheFirst) {
  const Space space = TestSpace("a: {uniform: [0, 1]}\nb: {uniform: [0, 1]}\n");
  History history;
  for (int64_t trial = 0; trial < 40; ++trial) {
    const Point point = DrawPoint(space, 1, trial);
    history.push_back({.number = trial,
                       .point = point,
                       .state = TrialState::kComplete,
                       .value = 0.1 * point[0] + point[1]});
  }
  const auto importance = MeasureImportance(space, history, {.metric = "loss"});
  ASSERT_EQ(importance.size(), 2U);
  EXPECT_EQ(importance[0].first, "b");
  EXPECT_GT(importance[0].second, 0.8);
  EXPECT_LT(importance[1].second, 0.3);
  history.resize(5);
  EXPECT_TRUE(MeasureImportance(space, history, {}).empty());
}

}  // namespace
}  // namespace muster::tune
