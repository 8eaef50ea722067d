#include "muster/train/input/shards.h"

#include <set>

#include "muster/base/test_size.h"
#include "muster/train/input/input.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using testing::ElementsAre;

TEST(ShardsTest, EachNumberOfReplicasHasEqualShares) {
  EXPECT_EQ(GetShardCount(2, 4), 12);
  EXPECT_EQ(GetShardCount(3, 3), 3);
  EXPECT_EQ(GetShardCount(1, 1), 1);
  EXPECT_EQ(GetShardCount(1, 100), 1600) << "too many to be equal";
  for (const int size : {2, 3, 4}) {
    std::multiset<int> all;
    for (int rank = 0; rank < size; ++rank) {
      const std::vector<int> own = GetShards(12, rank, size);
      EXPECT_EQ(std::ssize(own), 12 / size);
      all.insert(own.begin(), own.end());
    }
    EXPECT_EQ(all.size(), 12u);
    EXPECT_EQ(std::set<int>(all.begin(), all.end()).size(), 12u);
  }
}

TEST(ShardsTest, NotesMoveThePositionsOfTheirShards) {
  data::Position position;
  position.emitted = 32;
  std::vector<std::string> positions;
  ASSERT_EQ(MergeShardNotes({MakeShardNote(2, position), ""}, 3, &positions), std::nullopt);
  EXPECT_THAT(positions, ElementsAre("", "", data::SerializePosition(position)));
  for (const char* const wrong : {"3 x", "-1 x", "x", "2"}) {
    EXPECT_EQ(MergeShardNotes({"", wrong}, 3, &positions), 1u) << wrong;
  }
  EXPECT_THAT(positions, ElementsAre("", "", data::SerializePosition(position)));
}

// Replicas leave and join at any step; a batch whose step was not done is read again by the replica
// that then has its shard.
class ElasticShardsTest : public TrainingTest {
 protected:
  struct Replica {
    std::unique_ptr<Input> input;
    const InputBatch* batch = nullptr;
  };

  void Deal(const model::Model& model, const InputSpec& spec, int shards, int size) {
    replicas_.clear();
    for (int rank = 0; rank < size; ++rank) {
      std::vector<InputShard> own;
      for (const int shard : GetShards(shards, rank, size)) {
        InputShard& each = own.emplace_back();
        each.index = shard;
        each.shard = {.index = shard, .count = shards, .by = data::ShardBy::kRecord};
        if (positions_.empty() || positions_[static_cast<size_t>(shard)].empty()) continue;
        each.start = data::ParsePosition(positions_[static_cast<size_t>(shard)]).value();
      }
      auto input = Input::OpenShards(*files_, model, spec, own);
      ASSERT_TRUE(input.ok()) << input.status();
      replicas_.push_back({.input = *std::move(input)});
    }
  }

  // Reads a batch for each replica; true if there was any batch.
  bool Read() {
    bool any = false;
    for (Replica& replica : replicas_) {
      replica.batch = replica.input->Next().value();
      any = any || replica.batch != nullptr;
    }
    return any;
  }

  void Commit(int shards) {
    std::vector<std::string> notes;
    for (const Replica& replica : replicas_) {
      notes.emplace_back();
      if (replica.batch == nullptr) continue;
      notes.back() = MakeShardNote(replica.batch->shard, replica.batch->position);
      for (const std::string& key : replica.batch->keys) ++taken_[key];
      dropped_ += replica.batch->dropped;
    }
    ASSERT_EQ(MergeShardNotes(notes, shards, &positions_), std::nullopt);
  }

  int DroppedAtEnd() const {
    int dropped = 0;
    for (const Replica& replica : replicas_) dropped += replica.input->dropped_at_end();
    return dropped;
  }

  std::vector<Replica> replicas_;
  std::vector<std::string> positions_;
  std::map<std::string, int> taken_;
  int dropped_ = 0;
};

TEST_F(ElasticShardsTest, EachRecordIsReadOncePerEpochWhenReplicasLeaveAndJoin) {
  const auto estimator = NewEstimator(kTestSpec, "model");
  const auto seeds = static_cast<uint64_t>(Repetitions(60));
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    RandomStream random(seed, RandomPurpose::kSampleData, 2);
    positions_.clear();
    taken_.clear();
    dropped_ = 0;
    const int most = 2 + static_cast<int>(random.Below(4)), shards = GetShardCount(1, most);
    const int rows = 1 + static_cast<int>(random.Below(300));
    Write("deal.csv", Csv(rows));
    TrainSpec training = Training("deal.csv");
    InputSpec spec = training.input;
    spec.with_keys = true;
    spec.reader.batch_size = 1 + static_cast<int>(random.Below(20));
    spec.reader.shuffle = random.Below(2) == 0;
    spec.reader.drop_remainder = random.Below(3) == 0;
    Deal(estimator->model(), spec, shards, most);
    while (Read()) {
      const uint64_t what = random.Below(6);
      if (what < 4) Commit(shards);
      if (what > 2)
        Deal(estimator->model(), spec, shards,
             1 + static_cast<int>(random.Below(static_cast<uint64_t>(most))));
    }
    int taken = 0;
    for (const auto& [key, times] : taken_) taken += times;
    EXPECT_EQ(taken + dropped_ + DroppedAtEnd(), 3 * rows) << "seed " << seed;
    if (spec.reader.drop_remainder) continue;
    EXPECT_EQ(std::ssize(taken_), rows) << "seed " << seed;
    for (const auto& [key, times] : taken_) EXPECT_EQ(times, 3) << key << ", seed " << seed;
  }
}

}  // namespace
}  // namespace muster::train
