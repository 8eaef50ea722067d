// Several replicas train one model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "muster/collective/collectives.h"
#include "muster/train/allreduce/proposal.h"
#include "muster/train/allreduce/replicated_training_test_support.h"

namespace muster::train {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

// A chief ends the training while its worker is in a collective: the chief has all that it needs
// from the worker, but the worker still waits for data.
class EndedInAStep : public Replicas {
 public:
  EndedInAStep() : interrupt_(Interrupt::Create().value()) {}
  bool is_chief() const override { return false; }
  absl::StatusOr<ReplicaGeneration> Join(const StateId&, const absl::Status&) override {
    if (interrupt_->is_set()) return interrupt_->status();
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    other_ = std::jthread([this, fd = fds[0]] {
      const auto never = Interrupt::Create().value();
      collective::Group group(0, Channels(1, fd), *never);
      EXPECT_TRUE(collective::Barrier(group).ok());
      const auto drop = [](collective::ConstBytes, size_t) {};
      EXPECT_TRUE(group.Receive(1, sizeof(Proposal), drop).ok());  // the worker's proposal
      interrupt_->Set(absl::CancelledError("the chief has ended training"));
    });
    return ReplicaGeneration{
        .generation = 1,
        .group = std::make_unique<collective::Group>(1, Channels(0, fds[1]), *interrupt_),
        .states = {{.step = 0}, {.step = 0}}};
  }
  absl::Status Leave() override { return absl::OkStatus(); }

 private:
  using Interrupt = net::transport::Interrupt;
  static std::vector<std::unique_ptr<collective::Channel>> Channels(size_t peer, int fd) {
    std::vector<std::unique_ptr<collective::Channel>> channels(2);
    auto stream = net::transport::SocketStream::Create(process::Descriptor(fd), "test");
    channels[peer] = std::make_unique<collective::Channel>(std::move(stream).value(),
                                                           net::transport::ChannelOptions());
    return channels;
  }
  const std::unique_ptr<Interrupt> interrupt_;
  std::jthread other_;
};

TEST_F(ReplicatedTrainingTest, AWorkerWhoseChiefEndsDuringAStepHasNotFailed) {
  EndedInAStep replicas;
  TrainSpec spec = Training();
  spec.replicas = &replicas;
  const auto result = Train("ended", spec);
  EXPECT_TRUE(result.ok()) << result.status();
}

class SameAsOneTest : public ReplicatedTrainingTest {
 protected:
  // Each step has the whole data.
  void ExpectNReplicasDoWhatOneDoes(int size, const std::string& yaml, int64_t steps);
};

void SameAsOneTest::ExpectNReplicasDoWhatOneDoes(int size, const std::string& yaml, int64_t steps) {
  TrainSpec together = Training(), alone = Training();
  together.input.reader.shuffle = alone.input.reader.shuffle = false;
  // 240 rows: each replica has a contiguous share, so that its batches differ from those of one
  // process; with one batch per epoch all rows are the same set.
  Write("few.csv", Csv(240));
  for (TrainSpec* spec : {&together, &alone}) {
    spec->input.source.patterns = {"few.csv"};
    spec->input.reader.epochs = steps;
  }
  together.input.reader.batch_size = 240 / size;
  alone.input.reader.batch_size = 240;
  const auto model = std::hash<std::string>()(yaml);
  const std::string a = StrCat("together", size, "-", model), b = StrCat("alone", size, "-", model);
  TrainTogether(size, together, a, yaml);
  ASSERT_TRUE(Train(b, alone, yaml).ok());
  const auto weights = Weights(a), expected = Weights(b);
  ASSERT_EQ(weights.size(), expected.size());
  for (const auto& [name, bytes] : expected) {
    if (name == "global_step") {
      EXPECT_EQ(weights.at(name), bytes);
      continue;
    }
    const std::vector<float> got = Floats(weights.at(name)), want = Floats(bytes);
    float largest = 0, difference = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      largest = std::max(largest, std::abs(want[i]));
      difference = std::max(difference, std::abs(got[i] - want[i]));
    }
    // Sums that cancel out consist of rounding errors only.
    EXPECT_LE(difference, std::max(1e-5f * largest, 1e-7f)) << name << " of " << size;
  }
}

TEST_F(SameAsOneTest, NReplicasDoWhatOneDoesWithNTimesTheBatch) {
  for (const int size : {1, 2, 3}) ExpectNReplicasDoWhatOneDoes(size, PlainSpec(), 20);
  // So many sum by levels (collective/rank_levels.h).
  ExpectNReplicasDoWhatOneDoes(10, PlainSpec(), 20);
  ExpectNReplicasDoWhatOneDoes(12, LargeSpec(PlainSpec()), 2);
}

TEST_F(SameAsOneTest, NReplicasWithLargeModelsDoWhatOneDoes) {
  // After 10 to 20 steps the input of one of so many units is so close to 0 that rounding decides
  // whether a ReLU passes it; which unit that is depends on the machine's instructions.
  constexpr int64_t kSteps = 5;
  ExpectNReplicasDoWhatOneDoes(2, LargeSpec(PlainSpec()), kSteps);
  // Synchronised BatchNorm uses the group in the middle of the backward pass.
  ExpectNReplicasDoWhatOneDoes(2, LargeSpec(SynchronizedSpec("")), kSteps);
}

TEST_F(SameAsOneTest, SynchronizedBatchNormUsesTheWholeBatch) {
  for (const int size : {2, 3}) ExpectNReplicasDoWhatOneDoes(size, SynchronizedSpec(""), 20);
}

TEST_F(ReplicatedTrainingTest, RunsAreReproducibleByteForByte) {
  TrainTogether(3, Training(), "a");
  TrainTogether(3, Training(), "b");
  EXPECT_TRUE(Weights("a") == Weights("b"));
  TrainTogether(2, Training(), "c");
  EXPECT_FALSE(Weights("a") == Weights("c")) << "the ranks read the same rows";
}

TEST_F(ReplicatedTrainingTest, UnevenDataNeitherStopsNorBlocksAReplica) {
  Write("odd.csv", Csv(101));
  TrainSpec spec = Training("odd.csv");
  spec.input.reader.batch_size = 10;
  spec.input.reader.epochs = 1;
  TestCluster cluster(4);
  // Shares of 26, 25, 25 and 25 rows in batches of 10: 3 steps for each replica, the last batch of
  // 6 or 5 rows.
  const auto results = RunAll(cluster, 4, spec, "model");
  for (const auto& result : results) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->step, 3);
    EXPECT_EQ(result->examples, 101u) << "every record counts once";
  }
  // Sharded by file: one file has 10 times as many rows as the other.
  Write("part-0.csv", Csv(100));
  Write("part-1.csv", Csv(10));
  spec.input.source.patterns = {"part-*.csv"};
  TestCluster pair(2);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank, spec]() mutable {
      spec.input.source.shard = {.index = rank, .count = 2, .by = data::ShardBy::kFile};
      const auto replicas = pair.New(rank);
      spec.replicas = replicas.get();
      const auto result = Train("uneven", spec);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->step, 10);
      EXPECT_EQ(result->examples, 110u);
    });
  }
}

TEST_F(ReplicatedTrainingTest, OnlyTheChiefWrites) {
  TrainTogether(2, Training(), "model");
  const auto names = files_->List("model");
  ASSERT_TRUE(names.ok());
  int events = 0;
  for (const std::string& name : *names) events += name.find("tfevents") != name.npos;
  EXPECT_EQ(events, 1);
}

TEST_F(ReplicatedTrainingTest, ResumesFromACheckpointToTheSameBytes) {
  TrainTogether(3, Training(), "whole");
  for (const int cut : {1, 5, 12}) {
    const std::string folder = StrCat("cut", cut);
    TrainSpec first = Training();
    first.max_steps = cut;
    TrainTogether(3, first, folder);
    TrainTogether(3, Training(), folder);
    EXPECT_TRUE(Weights(folder) == Weights("whole")) << cut;
  }
}

TEST_F(ReplicatedTrainingTest, AnotherNumberOfReplicasIsAnError) {
  TrainSpec first = Training();
  first.max_steps = 3;
  TrainTogether(3, first, "model");
  TestCluster pair(2);
  for (const auto& result : RunAll(pair, 2, Training(), "model")) {
    EXPECT_THAT(ToStd(result.status().message()),
                AllOf(HasSubstr("3 replicas"), HasSubstr("--fresh-data")));
  }
  EXPECT_THAT(ToStd(Train("model", Training()).status().message()), HasSubstr("3 replicas"));
}

TEST_F(ReplicatedTrainingTest, ABadRecordEndsAllReplicasAndIsNamed) {
  std::string csv = Csv(60);
  csv += "60,not a number,red,1\n";
  Write("bad.csv", csv);
  TrainSpec spec = Training("bad.csv");
  spec.input.reader.shuffle = false;
  TestCluster cluster(2);
  std::jthread other([&] {
    // Worker 0 reads the second half and ends; the chief waits for a replacement until the test
    // kills it.
    const auto result = RunRank(cluster, 1, 2, spec, "model", kTestSpec);
    EXPECT_THAT(ToStd(result.status().message()), HasSubstr("bad.csv:62"));
    cluster.Kill(0);
  });
  const auto replicas = cluster.New(0);
  TrainSpec own = spec;
  own.input.source.shard = {.index = 0, .count = 2, .by = data::ShardBy::kRecord};
  own.replicas = replicas.get();
  EXPECT_FALSE(Train("model", own).ok());
}

// Kills a rank after the chief's third step.
class KillOnce : public Hook {
 public:
  KillOnce(TestCluster& cluster, int rank) : cluster_(cluster), rank_(rank) {}
  absl::Status AfterRun(Session& session, const StepValues&) override {
    if (session.step == 3 && cluster_.kills() == 0) cluster_.Kill(rank_);
    return absl::OkStatus();
  }

 private:
  TestCluster& cluster_;
  const int rank_;
};

TEST_F(ReplicatedTrainingTest, WhichReplicaTookOverWhoseStateIsTold) {
  for (const int killed : {0, 1}) {
    TestCluster cluster(2);
    const std::string folder = StrCat("model", killed);
    std::jthread other([&] {
      const auto result = RunRank(cluster, 1, 2, Training(), folder, kTestSpec);
      EXPECT_TRUE(result.ok()) << result.status();
    });
    TrainSpec spec = Training();
    spec.input.source.shard = {.index = 0, .count = 2, .by = data::ShardBy::kRecord};
    spec.hooks = {std::make_shared<KillOnce>(cluster, killed)};
    testing::internal::CaptureStderr();
    absl::StatusOr<TrainResult> result;
    do {
      const auto replicas = cluster.New(0);
      spec.replicas = replicas.get();
      Progress progress(ProgressStyle::kLog, 2, clock_);
      result = NewEstimator(kTestSpec, folder)->Train(spec, progress, never_);
    } while (!result.ok() && result.status().message() == "killed by the test");
    EXPECT_TRUE(result.ok()) << result.status();
    const std::string told = testing::internal::GetCapturedStderr();
    const std::string event = killed == 0 ? "chief-0 took over the state of worker-0 at step "
                                          : "worker-0 took over the state of chief-0 at step ";
    // The one that survives may not have ended the step after which the other one was killed.
    EXPECT_THAT(told, AnyOf(HasSubstr(event + "3"), HasSubstr(event + "2")));
  }
}

}  // namespace
}  // namespace muster::train
