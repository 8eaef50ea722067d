#include "muster/train/input/shards.h"

#include <charconv>
#include <numeric>
#include <utility>

namespace muster::train {
namespace {

// Shards per replica at the largest number of replicas. With this many, no share is larger than
// another by more than a sixteenth.
constexpr int kMostShardsEach = 32, kShardsEach = 16;

}  // namespace

int GetShardCount(int fewest, int most) {
  int64_t shards = 1;
  for (int replicas = fewest; replicas <= most; ++replicas) {
    shards = std::lcm(shards, int64_t{replicas});
    if (shards > int64_t{most} * kMostShardsEach) return most * kShardsEach;
  }
  return static_cast<int>(shards);
}

std::vector<int> GetShards(int shards, int rank, int size) {
  std::vector<int> own;
  for (int shard = rank; shard < shards; shard += size) own.push_back(shard);
  return own;
}

std::string MakeShardNote(int shard, const data::Position& position) {
  return StrCat(shard, " ", data::SerializePosition(position));
}

std::optional<size_t> MergeShardNotes(const std::vector<std::string>& notes, int shards,
                                      std::vector<std::string>* positions) {
  std::vector<std::pair<size_t, std::string>> taken;
  for (size_t replica = 0; replica < notes.size(); ++replica) {
    const std::string& note = notes[replica];
    if (note.empty()) continue;
    int shard = -1;
    const char* const end = note.data() + note.size();
    const auto [stop, error] = std::from_chars(note.data(), end, shard);
    if (error != std::errc() || shard < 0 || shard >= shards || stop == end || *stop != ' ') {
      return replica;
    }
    taken.emplace_back(shard, std::string(stop + 1, end));
  }
  positions->resize(static_cast<size_t>(shards));
  for (auto& [shard, position] : taken) (*positions)[shard] = std::move(position);
  return std::nullopt;
}

}  // namespace muster::train
