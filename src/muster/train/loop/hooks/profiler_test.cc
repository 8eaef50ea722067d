#include "muster/train/loop/hooks/profiler.h"

#include <set>

#include "muster/train/training_test_support.h"
#include "nlohmann/json.hpp"

namespace muster::train {
namespace {

using testing::ElementsAre;
using testing::IsSupersetOf;

class ProfilerTest : public TrainingTest {
 protected:
  std::set<std::string> ToSpans(const std::string& path) {
    std::set<std::string> names;
    const auto json = nlohmann::json::parse(io::ReadFile(*files_, path).value());
    for (const auto& event : json.at("traceEvents")) {
      if (event.at("ph") == "X") names.insert(event.at("name").get<std::string>());
    }
    return names;
  }
};

TEST_F(ProfilerTest, WritesTheFirstStepAndEachNthAfterIt) {
  TrainSpec spec = Training();
  spec.max_steps = 21;
  spec.hooks = {NewProfiler(10, "profile")};
  RunConfig config = Config("model");
  config.save_checkpoints_steps = 11;
  ASSERT_TRUE(Train(config, spec).ok());
  EXPECT_THAT(files_->List("profile").value(),
              ElementsAre("timeline-1.json", "timeline-11.json", "timeline-21.json"));
  EXPECT_THAT(ToSpans("profile/timeline-1.json"),
              ElementsAre("forward-backward", "input wait", "update"));
  EXPECT_THAT(ToSpans("profile/timeline-11.json"), IsSupersetOf({"save", "update"}));
}

TEST_F(ProfilerTest, DoesNotChangeTheResult) {
  ASSERT_TRUE(Train(Config("plain"), Training()).ok());
  TrainSpec spec = Training();
  spec.hooks = {NewProfiler(2)};
  ASSERT_TRUE(Train(Config("profiled"), spec).ok());
  EXPECT_TRUE(Weights("plain") == Weights("profiled"));
  EXPECT_TRUE(files_->Stat("profiled/timeline-57.json").ok());
}

TEST(ChromeTraceTest, IsMicrosecondsSinceTheFirstSpan) {
  const FakeClock clock;
  StepTrace trace(clock);
  trace.Add("input wait", 5000, 6500);
  trace.Add("update", 7000, 7001);
  const auto json = nlohmann::json::parse(ChromeTrace(trace, 3));
  const auto& events = json.at("traceEvents");
  EXPECT_EQ(events.at(0).at("args").at("name"), "step 3");
  EXPECT_EQ(events.at(1).at("ts"), 0.0);
  EXPECT_EQ(events.at(1).at("dur"), 1.5);
  EXPECT_EQ(events.at(2).at("ts"), 2.0);
  EXPECT_EQ(events.at(2).at("dur"), 0.001);
}

}  // namespace
}  // namespace muster::train
