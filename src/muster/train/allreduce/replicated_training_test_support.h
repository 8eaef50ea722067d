// Trainings by replicas that are threads of one process. For tests of this room only.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "muster/train/allreduce/test_replicas.h"
#include "muster/train/input/input.h"
#include "muster/train/training_test_support.h"

namespace muster::train {

// The test model without dropout and BatchNorm, whose statistics differ between replicas.
inline std::string PlainSpec() {
  std::string spec(kTestSpec);
  constexpr std::string_view kOwn = "dropout: 0.2, batch_norm: true,";
  return spec.erase(spec.find(kOwn), kOwn.size());
}

// The test model with dropout and with BatchNorm whose statistics are those of all replicas.
inline std::string SynchronizedSpec(std::string_view dropout = "dropout: 0.2,") {
  std::string spec(kTestSpec);
  constexpr std::string_view kOwn = "dropout: 0.2, batch_norm: true,";
  return spec.replace(spec.find(kOwn), kOwn.size(),
                      StrCat(dropout, " batch_norm: true, synchronized_batch_norm: true,"));
}

// A model whose gradients need more than one turn of the ring (collective/collectives.h), so that
// sums begin during the backward pass.
inline std::string LargeSpec(std::string spec) {
  constexpr std::string_view kOwn = "hidden_units: [8]";
  return spec.replace(spec.find(kOwn), kOwn.size(), "hidden_units: [600, 500]");
}

// Reads what the spec says, without knowing the rows of the next batch.
class WithoutNextRows : public BatchSource {
 public:
  static InputFn Of(const InputSpec& spec) {
    return [spec](io::FileSystem& files, const model::Model& model,
                  const data::Position* start) -> absl::StatusOr<std::unique_ptr<BatchSource>> {
      MUSTER_ASSIGN_OR_RETURN(auto input, Input::Open(files, model, spec, start));
      return std::make_unique<WithoutNextRows>(std::move(input));
    };
  }
  explicit WithoutNextRows(std::unique_ptr<Input> input) : input_(std::move(input)) {}
  absl::StatusOr<const InputBatch*> Next() override { return input_->Next(); }
  bool has_positions() const override { return true; }

 private:
  const std::unique_ptr<Input> input_;
};

class ReplicatedTrainingTest : public TrainingTest {
 protected:
  // Trains as one rank of `size`; starts again each time the rank was killed.
  absl::StatusOr<TrainResult> RunRank(TestCluster& cluster, int rank, int size, TrainSpec spec,
                                      const std::string& folder, std::string_view yaml) {
    spec.input.source.shard = {.index = rank, .count = size, .by = data::ShardBy::kRecord};
    if (guesses_) spec.input_fn = WithoutNextRows::Of(spec.input);
    while (true) {
      const auto replicas = cluster.New(rank);
      spec.replicas = replicas.get();
      auto result = Train(folder, spec, yaml);
      // A chief that has lost its state ends, and is started again like one that was killed.
      if (result.status().message() != "killed by the test" &&
          !absl::IsUnavailable(result.status())) {
        return result;
      }
      if (absl::IsUnavailable(result.status())) cluster.Kill(rank);
    }
  }

  std::vector<absl::StatusOr<TrainResult>> RunAll(TestCluster& cluster, int size,
                                                  const TrainSpec& spec, const std::string& folder,
                                                  std::string_view yaml = kTestSpec) {
    std::vector<absl::StatusOr<TrainResult>> results(static_cast<size_t>(size));
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        results[static_cast<size_t>(rank)] = RunRank(cluster, rank, size, spec, folder, yaml);
      });
    }
    threads.clear();
    return results;
  }

  void TrainTogether(int size, const TrainSpec& spec, const std::string& folder,
                     std::string_view yaml = kTestSpec) {
    TestCluster cluster(size);
    for (const auto& result : RunAll(cluster, size, spec, folder, yaml)) {
      ASSERT_TRUE(result.ok()) << result.status();
    }
  }

  bool guesses_ = false;  // replicas do not know the rows of their next batches
};

}  // namespace muster::train
