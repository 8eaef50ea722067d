#include "muster/train/loop/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <string>

namespace muster::train {
namespace {

class ProgressTest : public testing::Test {
 protected:
  ProgressTest() { EXPECT_EQ(pipe(ends_.data()), 0); }
  ~ProgressTest() override { close(ends_[0]); }

  std::string Printed() {
    close(ends_[1]);
    std::string text(4096, '\0');
    const ssize_t n = read(ends_[0], text.data(), text.size());
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return text;
  }

  // 500 of 1000 steps in 10 seconds.
  static ProgressState HalfWay() {
    ProgressState state;
    state.step = 500;
    state.total_steps = 1000;
    state.epoch = 1;
    state.epochs = 2;
    state.examples = 20000;
    state.loss = 0.25;
    state.has_loss = true;
    return state;
  }

  std::array<int, 2> ends_{};
  FakeClock clock_;
};

TEST_F(ProgressTest, ALogGetsPlainLinesAtIntervals) {
  Progress progress(ProgressStyle::kLog, ends_[1], clock_);
  progress.Update(HalfWay());  // too early
  clock_.Advance(10);
  progress.Update(HalfWay());
  progress.Update(HalfWay());  // too early again
  EXPECT_EQ(Printed(), "train  step 500/1000  epoch 1/2  2.0k examples/s  loss 0.2500  10s left\n");
}

TEST_F(ProgressTest, TheLagOfDataThatGrowsIsShown) {
  ProgressState state = HalfWay();
  state.total_steps = state.epochs = 0;
  state.lag = 12'345;
  {
    Progress progress(ProgressStyle::kLog, ends_[1], clock_);
    clock_.Advance(10);
    progress.Update(state);
  }
  Progress json(ProgressStyle::kJson, ends_[1], clock_);
  clock_.Advance(10);
  json.Update(state);
  const std::string text = Printed();
  EXPECT_THAT(text,
              testing::StartsWith("train  step 500  2.0k examples/s  lag 12,345  loss 0.2500\n{"));
  EXPECT_THAT(text, testing::HasSubstr(R"(,"lag":12345,"loss":0.25)"));
}

TEST_F(ProgressTest, TheStepsThatWereTakenAreAllInTheEnd) {
  Progress progress(ProgressStyle::kLog, ends_[1], clock_);
  clock_.Advance(10);
  progress.Finish(HalfWay());
  EXPECT_EQ(Printed(), "train  step 500/500  epoch 1/2  2.0k examples/s  loss 0.2500\n");
}

TEST_F(ProgressTest, ATerminalGetsOneLine) {
  {
    Progress progress(ProgressStyle::kTerminal, ends_[1], clock_);
    clock_.Advance(10);
    progress.Update(HalfWay());
  }
  const std::string text = Printed();
  EXPECT_EQ(text.front(), '\r');
  EXPECT_EQ(text.back(), '\n');
}

TEST_F(ProgressTest, AStepBeyondTheEstimateIsTheTotal) {
  Progress progress(ProgressStyle::kLog, ends_[1], clock_);
  clock_.Advance(10);
  ProgressState state = HalfWay();
  state.step = 1001;
  progress.Update(state);
  EXPECT_EQ(Printed(), "train  step 1001/1001  epoch 1/2  2.0k examples/s  loss 0.2500\n");
}

TEST_F(ProgressTest, ExcludedSecondsDoNotCount) {
  Progress progress(ProgressStyle::kLog, ends_[1], clock_);
  clock_.Advance(10);
  Progress nested = progress.Nested();
  clock_.Advance(30);
  EXPECT_NEAR(nested.seconds(), 30, 1e-6);
  progress.Exclude(nested.seconds());
  progress.Update(HalfWay());
  EXPECT_EQ(Printed(), "train  step 500/1000  epoch 1/2  2.0k examples/s  loss 0.2500  10s left\n");
}

TEST_F(ProgressTest, JsonHasOneObjectPerLine) {
  Progress progress(ProgressStyle::kJson, ends_[1], clock_);
  clock_.Advance(10);
  progress.Update(HalfWay());
  progress.Note("from \"a\xff\"");
  EXPECT_EQ(Printed(),
            "{\"event\":\"progress\",\"verb\":\"train\",\"step\":500,\"total_steps\":1000,"
            "\"epoch\":1,\"examples\":20000,\"examples_per_second\":2000.0,\"seconds\":10.000,"
            "\"loss\":0.25}\n"
            "{\"event\":\"note\",\"text\":\"from \\\"a\xef\xbf\xbd\\\"\"}\n");
}

TEST_F(ProgressTest, AWarningIsNeverDropped) {
  for (const auto style : {ProgressStyle::kNone, ProgressStyle::kLog, ProgressStyle::kJson}) {
    Progress progress(style, ends_[1], clock_);
    if (style == ProgressStyle::kNone) progress.Note("warm-started");
    progress.Warn("older weights");
  }
  EXPECT_EQ(Printed(),
            "warning: older weights\nwarning: older weights\n"
            "{\"event\":\"note\",\"text\":\"older weights\",\"level\":\"warning\"}\n");
}

ProgressState OfTwoReplicas(ProgressState state) {
  state.replicas = {{"chief-0", 3000}, {"worker-0", 1200}};
  state.straggler = {"worker-0", 2.5};
  return state;
}

TEST_F(ProgressTest, ReplicasHaveTheirOwnRatesAndTheSlowestIsNamed) {
  Progress progress(ProgressStyle::kLog, ends_[1], clock_);
  clock_.Advance(10);
  progress.Update(OfTwoReplicas(HalfWay()));
  EXPECT_EQ(Printed(),
            "train  step 500/1000  epoch 1/2  2.0k examples/s  worker-0 holds "
            "the others up (2.5x)  loss 0.2500  10s left\n");
}

TEST_F(ProgressTest, JsonHasTheReplicas) {
  Progress progress(ProgressStyle::kJson, ends_[1], clock_);
  clock_.Advance(10);
  progress.Update(OfTwoReplicas(HalfWay()));
  const std::string text = Printed();
  EXPECT_NE(text.find("\"replicas\":[{\"task\":\"chief-0\",\"examples_per_second\":3000.0},"
                      "{\"task\":\"worker-0\",\"examples_per_second\":1200.0}],"
                      "\"straggler\":\"worker-0\"}"),
            std::string::npos)
      << text;
}

TEST_F(ProgressTest, MetricsAreShownBesideTheLoss) {
  ProgressState state = HalfWay();
  state.metrics = {{"AUC", 0.75}, {"unknown", std::nan("")}};
  {
    Progress progress(ProgressStyle::kLog, ends_[1], clock_);
    progress.Update(state, /*last=*/true);
    Progress json(ProgressStyle::kJson, ends_[1], clock_);
    json.Update(state, /*last=*/true);
  }
  const std::string printed = Printed();
  EXPECT_THAT(printed, testing::HasSubstr("loss 0.2500  AUC 0.7500  unknown nan"));
  EXPECT_THAT(printed, testing::HasSubstr(R"("metrics":{"AUC":0.75,"unknown":null}})"));
}

}  // namespace
}  // namespace muster::train
