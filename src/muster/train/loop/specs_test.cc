#include "muster/train/loop/specs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "muster/train/loop/exporters/exporters.h"

namespace muster::train {
namespace {

template <typename Spec>
void ExpectRefused(const std::vector<std::pair<std::function<void(Spec*)>, std::string>>& cases) {
  std::set<std::string> messages;
  for (const auto& [break_it, message] : cases) {
    Spec spec;
    spec.input.source.patterns = {"data.csv"};
    EXPECT_TRUE(Validate(spec).ok());
    break_it(&spec);
    const absl::Status status = Validate(spec);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << message;
    EXPECT_EQ(status.message(), message);
    EXPECT_TRUE(messages.insert(message).second) << "said twice: " << message;
  }
}

TEST(TrainSpecTest, EachErrorHasItsMessage) {
  ExpectRefused<TrainSpec>({
      {[](TrainSpec* s) { s->steps = 1, s->max_steps = 1; },
       "can not provide both steps and max_steps"},
      {[](TrainSpec* s) { s->max_steps = 0; }, "must specify max_steps > 0, given: 0"},
      {[](TrainSpec* s) { s->steps = -1; }, "must specify steps > 0, given: -1"},
      {[](TrainSpec* s) { s->input = {}; }, "a training needs an input: files or an input_fn"},
      {[](TrainSpec* s) { s->hooks = {nullptr}; }, "a hook of the training is null"},
      {[](TrainSpec* s) { s->saving_listeners = {nullptr}; },
       "a saving_listener of the training is null"},
  });
}

TEST(EvalSpecTest, HasTheEstimatorsDefaults) {
  const EvalSpec spec;
  EXPECT_EQ(spec.steps, 100);
  EXPECT_EQ(spec.start_delay_secs, 120);
  EXPECT_EQ(spec.throttle_secs, 600);
  EXPECT_EQ(EvalFolder("m", ""), "m/eval");
  EXPECT_EQ(EvalFolder("m", "test"), "m/eval_test");
}

TEST(EvalSpecTest, EachErrorHasItsMessage) {
  ExpectRefused<EvalSpec>({
      {[](EvalSpec* s) { s->steps = 0; }, "must specify steps > 0 of an evaluation, given: 0"},
      {[](EvalSpec* s) { s->start_delay_secs = -1; },
       "must specify start_delay_secs >= 0, given: -1"},
      {[](EvalSpec* s) { s->throttle_secs = -1; }, "must specify throttle_secs >= 0, given: -1"},
      {[](EvalSpec* s) { s->name = "a/b"; },
       "the name of an evaluation is part of a folder's name and cannot contain '/': 'a/b'"},
      {[](EvalSpec* s) { s->input = {}; }, "an evaluation needs an input: files or an input_fn"},
      {[](EvalSpec* s) { s->hooks = {nullptr}; }, "a hook of the evaluation is null"},
      {[](EvalSpec* s) { s->exporters = {nullptr}; }, "an exporter is null"},
      {[](EvalSpec* s) {
         s->exporters = {NewFinalExporter(""), NewFinalExporter("a")};
       },
       "an exporter cannot have an empty name; all exporter names: , a"},
      {[](EvalSpec* s) {
         s->exporters = {NewFinalExporter("a"), NewFinalExporter("a")};
       },
       "exporters must have unique names, 'a' appears twice; all exporter names: a, a"},
  });
}

}  // namespace
}  // namespace muster::train
