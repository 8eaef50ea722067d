#include "muster/train/loop/replica_rates.h"

#include "gtest/gtest.h"

namespace muster::train {
namespace {

void AddSteps(ReplicaRates& rates, int steps, std::vector<ReplicaWork> work) {
  for (int i = 0; i < steps; ++i) rates.Add(work);
}

TEST(ReplicaRatesTest, ARateExcludesTheTimeOfWaits) {
  ReplicaRates rates;
  rates.Begin({"chief-0", "worker-0"});
  EXPECT_EQ(rates.rates()[0].examples_per_second, 0);
  AddSteps(rates, 10, {{.rows = 100, .seconds = 0.5F}, {.rows = 100, .seconds = 0.25F}});
  ASSERT_EQ(rates.rates().size(), 2U);
  EXPECT_EQ(rates.rates()[1].task, "worker-0");
  EXPECT_DOUBLE_EQ(rates.rates()[0].examples_per_second, 200);
  EXPECT_DOUBLE_EQ(rates.rates()[1].examples_per_second, 400);
}

TEST(ReplicaRatesTest, NamesTheStraggler) {
  ReplicaRates rates;
  rates.Begin({"chief-0", "worker-0", "worker-1"});
  AddSteps(rates, 50, {{1, 1.0F}, {1, 3.0F}, {1, 1.25F}});
  EXPECT_EQ(rates.straggler().task, "worker-0");
  EXPECT_DOUBLE_EQ(rates.straggler().times, 3 / 1.25);
}

TEST(ReplicaRatesTest, OfTwoTheSlowerIsComparedWithTheOther) {
  ReplicaRates rates;
  rates.Begin({"chief-0", "worker-0"});
  AddSteps(rates, 50, {{1, 2.0F}, {1, 1.0F}});
  EXPECT_EQ(rates.straggler().task, "chief-0");
  EXPECT_DOUBLE_EQ(rates.straggler().times, 2);
}

TEST(ReplicaRatesTest, SmallDifferencesAndTheFirstStepsNameNoStraggler) {
  ReplicaRates rates;
  rates.Begin({"chief-0", "worker-0"});
  AddSteps(rates, 10, {{1, 9.0F}, {1, 1.0F}});
  EXPECT_EQ(rates.straggler().task, "");
  rates.Begin({"chief-0", "worker-0"});
  AddSteps(rates, 50, {{1, 1.25F}, {1, 1.0F}});
  EXPECT_EQ(rates.straggler().task, "");
  rates.Begin({"chief-0"});
  AddSteps(rates, 50, {{1, 1.0F}});
  EXPECT_EQ(rates.straggler().task, "");
}

TEST(ReplicaRatesTest, AReplicaWhoseDataHasEndedIsNotCompared) {
  ReplicaRates rates;
  rates.Begin({"chief-0", "worker-0", "worker-1"});
  AddSteps(rates, 50, {{1, 1.0F}, {1, 1.0F}, {1, 1.0F}});
  AddSteps(rates, 400, {{1, 1.0F}, {0, 0.001F}, {0, 0.001F}});
  EXPECT_EQ(rates.straggler().task, "");
  EXPECT_DOUBLE_EQ(rates.rates()[1].examples_per_second, 1);
}

TEST(ReplicaRatesTest, ForgetsOldSteps) {
  ReplicaRates rates;
  rates.Begin({"chief-0", "worker-0"});
  AddSteps(rates, 100, {{1, 1.0F}, {1, 5.0F}});
  ASSERT_EQ(rates.straggler().task, "worker-0");
  AddSteps(rates, 400, {{1, 1.0F}, {1, 1.0F}});
  EXPECT_EQ(rates.straggler().task, "");
}

}  // namespace
}  // namespace muster::train
