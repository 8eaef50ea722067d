// Several replicas train on data that grows; no death of a replica may change the results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "muster/train/allreduce/test_replicas.h"
#include "muster/train/input/told_segments.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

// Files as segments, each of which has not begun yet when it is asked for first.
class LateSegments : public data::GrowingData {
 public:
  absl::StatusOr<std::optional<data::DataSegment>> GetSegment(io::FileSystem&,
                                                              int64_t number) override {
    if (number >= std::ssize(segments) || asked_[number]++ == 0) return std::nullopt;
    return segments[static_cast<size_t>(number)];
  }
  absl::StatusOr<uint64_t> CountLater() override { return 0; }

  std::vector<data::DataSegment> segments;

 private:
  std::map<int64_t, int> asked_;
};

// Kills a rank after the chief has done a step.
class KillAfter : public Hook {
 public:
  KillAfter(TestCluster& cluster, int rank, int64_t step)
      : cluster_(cluster), rank_(rank), step_(step) {}
  absl::Status AfterRun(Session& session, const StepValues&) override {
    if (session.step == step_ && cluster_.kills() == 0) cluster_.Kill(rank_);
    return absl::OkStatus();
  }

 private:
  TestCluster& cluster_;
  const int rank_;
  const int64_t step_;
};

class GrowingReplicasTest : public TrainingTest {
 protected:
  // With batches of 16 rows, segments of 40, 16, 7, 1 and 40 rows are 2 + 1 + 1 + 1 + 2 steps. Of
  // one row, one of the replicas has none.
  static constexpr int kReplicas = 2, kSteps = 7, kRecords = 104;

  GrowingReplicasTest() {
    for (const int rows : {40, 16, 7, 1, 40}) {
      const std::string name = StrCat("segment-", growth_->segments.size(), ".csv");
      Write(name, Csv(rows));
      growth_->segments.push_back({.patterns = {name}, .records = static_cast<uint64_t>(rows)});
    }
  }

  TrainResult TrainRank(TestCluster& cluster, int rank, const std::string& folder, int64_t steps,
                        const std::vector<std::shared_ptr<Hook>>& hooks) {
    while (true) {
      const auto replicas = cluster.New(rank);
      TrainSpec spec = Training("no such file");
      spec.input.reader.epochs = 1;
      spec.input.source.shard = {.index = rank, .count = kReplicas, .by = data::ShardBy::kRecord};
      spec.max_steps = steps;
      spec.replicas = replicas.get();
      spec.segments = std::make_shared<ToldSegments>(rank == 0 ? growth_ : nullptr);
      spec.input.growth = spec.segments;
      if (rank == 0) spec.hooks = hooks;
      const auto result = Train(folder, spec);
      if (result.ok()) return *result;
      EXPECT_EQ(result.status().message(), "killed by the test");
      if (result.status().message() != "killed by the test") return {};
    }
  }

  // Returns the chief's result.
  TrainResult TrainTogether(TestCluster& cluster, const std::string& folder, int64_t steps = kSteps,
                            const std::vector<std::shared_ptr<Hook>>& hooks = {}) {
    std::jthread other([&] { TrainRank(cluster, 1, folder, steps, {}); });
    return TrainRank(cluster, 0, folder, steps, hooks);
  }

  std::shared_ptr<LateSegments> growth_ = std::make_shared<LateSegments>();
};

TEST_F(GrowingReplicasTest, EachRecordOfEachSegmentIsTrainedOnce) {
  TestCluster cluster(kReplicas);
  const TrainResult result = TrainTogether(cluster, "model");
  EXPECT_EQ(result.step, kSteps);
  ASSERT_TRUE(result.records.has_value());
  EXPECT_EQ(result.records->trained, kRecords);
  EXPECT_EQ(result.records->repeated, 0);
}

TEST_F(GrowingReplicasTest, ADeathAfterAnyStepChangesNoByte) {
  TestCluster undisturbed(kReplicas);
  TrainTogether(undisturbed, "whole");
  for (int victim = 0; victim < kReplicas; ++victim) {
    for (int step = 1; step < kSteps; ++step) {
      const std::string folder = StrCat("killed-", victim, "-", step);
      TestCluster cluster(kReplicas);
      const TrainResult result = TrainTogether(
          cluster, folder, kSteps, {std::make_shared<KillAfter>(cluster, victim, step)});
      EXPECT_EQ(cluster.kills(), 1);
      EXPECT_EQ(result.records->trained, kRecords);
      EXPECT_EQ(Weights(folder), Weights("whole")) << folder;
    }
  }
}

TEST_F(GrowingReplicasTest, AJobThatStoppedAfterAnyStepContinuesExactly) {
  TestCluster undisturbed(kReplicas);
  TrainTogether(undisturbed, "whole");
  for (int step = 1; step < kSteps; ++step) {
    const std::string folder = StrCat("stopped-", step);
    TestCluster first(kReplicas), second(kReplicas);
    TrainTogether(first, folder, step);
    const TrainResult result = TrainTogether(second, folder);
    EXPECT_EQ(result.first_step, step);
    EXPECT_EQ(result.records->trained, kRecords);
    EXPECT_EQ(Weights(folder), Weights("whole")) << folder;
  }
}

TEST(ToldSegmentsTest, TheChiefsTextIsTheSegment) {
  const auto files = io::NewMemoryFileSystem();
  const auto growth = std::make_shared<LateSegments>();
  growth->segments = {{.patterns = {"kafka://a/b?ranges=0:0-5&chunk=9", "c"}, .records = 5}};
  ToldSegments chief(growth), worker(nullptr);
  EXPECT_EQ(*chief.Ask(*files, 0), "") << "it has not begun";
  const std::string text = *chief.Ask(*files, 0);
  EXPECT_EQ(*worker.Ask(*files, 0), "");
  EXPECT_EQ(*worker.GetSegment(*files, 0), std::nullopt);
  ASSERT_TRUE(worker.Tell(text).ok());
  EXPECT_EQ((*worker.GetSegment(*files, 0))->patterns, growth->segments[0].patterns);
  EXPECT_EQ((*worker.GetSegment(*files, 0))->records, 5u);
  EXPECT_EQ(*worker.GetSegment(*files, 1), std::nullopt);
  for (const char* const wrong : {"", "0", "0 5", "x 5\na", "-1 5\na", "0 5 6\na"}) {
    EXPECT_FALSE(worker.Tell(wrong).ok()) << wrong;
  }
  EXPECT_EQ(worker.number(), 0);
}

}  // namespace
}  // namespace muster::train
