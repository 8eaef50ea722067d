#include <algorithm>
#include <cstring>

#include "muster/collective/collectives.h"
#include "muster/collective/rank_levels.h"
#include "muster/math/vector.h"

namespace muster::collective {
namespace {

// If a rank sends at most this many bytes in total, it sends its values directly to every other
// rank: each rank then waits once instead of 2 (n-1) times.
constexpr size_t kDirectBytes = size_t{32} << 10;
// This many bytes per rank go around the ring at a time, so that a chunk is still in the core's
// cache when it is forwarded and when its sum comes back. The order of sums depends on this number.
constexpr size_t kRingBytes = size_t{256} << 10;
constexpr size_t kChunkFloats = 16;  // chunks begin on a cache line

// A range of values.
struct Chunk {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
};

// One of as many chunks as there are ranks.
Chunk GetChunk(size_t values, int ranks, int index) {
  const auto n = static_cast<size_t>(ranks), i = static_cast<size_t>(index);
  const size_t lines = (values + kChunkFloats - 1) / kChunkFloats;
  const auto border = [&](size_t k) { return std::min(values, lines * k / n * kChunkFloats); };
  return {border(i), border(i + 1)};
}

void AddPart(ConstBytes part, size_t offset, float* to) {
  // Parts begin at an address and an offset divisible by 4.
  math::AddTo(reinterpret_cast<const float*>(part.data()), to + offset / sizeof(float),
              part.size() / sizeof(float));
}

// Sums in the order of ranks, from copies, since the values must not change while they are sent.
absl::Status AllReduceDirectly(Group& group, std::span<float> values) {
  const int n = group.size(), rank = group.rank();
  const size_t bytes = values.size_bytes();
  float* const all = group.Scratch(values.size() * static_cast<size_t>(n));
  std::memcpy(all + static_cast<size_t>(rank) * values.size(), values.data(), bytes);
  MUSTER_RETURN_IF_ERROR(
      AllGather(group, std::as_bytes(values),
                std::as_writable_bytes(std::span(all, values.size() * static_cast<size_t>(n)))));
  std::memcpy(values.data(), all, bytes);
  for (int from = 1; from < n; ++from) {
    math::AddTo(all + static_cast<size_t>(from) * values.size(), values.data(), values.size());
  }
  return absl::OkStatus();
}

absl::Status RingTurn(Group& group, std::span<float> values) {
  const int n = group.size(), rank = group.rank();
  const int next = (rank + 1) % n, previous = (rank + n - 1) % n;
  const auto chunk = [&](int index) {
    const Chunk range = GetChunk(values.size(), n, (index % n + n) % n);
    return values.subspan(range.begin, range.size());
  };
  // Reduce-scatter: chunk i starts at rank i + 1 and has all ranks' values when it reaches rank i.
  for (int step = 1; step < n; ++step) {
    const std::span<float> out = chunk(rank - step), in = chunk(rank - step - 1);
    MUSTER_RETURN_IF_ERROR(
        group.Exchange(next, std::as_bytes(out), previous, in.size_bytes(),
                       [&](ConstBytes part, size_t offset) { AddPart(part, offset, in.data()); }));
  }
  for (int step = 0; step < n - 1; ++step) {
    MUSTER_RETURN_IF_ERROR(group.Exchange(next, std::as_bytes(chunk(rank - step)), previous,
                                          std::as_writable_bytes(chunk(rank - step - 1))));
  }
  return absl::OkStatus();
}

// Sums values by the levels of a large group: in each one a rank gives away the parts that it does
// not keep, and adds what others give of its own part. Then the sums go back the same way.
class LevelTurn {
 public:
  LevelTurn(Group& group, const RankLevels& levels, std::span<float> values)
      : group_(group), levels_(levels), values_(values), seat_(levels.GetSeat(group.rank())) {}

  absl::Status Run() {
    const int rank = group_.rank();
    if (levels_.IsSpare(rank)) {
      MUSTER_RETURN_IF_ERROR(group_.Send(rank + 1, std::as_bytes(values_)));
      return Receive(rank + 1, [&](ConstBytes part, size_t offset) {
        std::memcpy(std::as_writable_bytes(values_).data() + offset, part.data(), part.size());
      });
    }
    const int spare = levels_.GetSpare(rank);
    if (spare >= 0) {
      MUSTER_RETURN_IF_ERROR(Receive(
          spare, [&](ConstBytes part, size_t offset) { AddPart(part, offset, values_.data()); }));
    }
    MUSTER_RETURN_IF_ERROR(SumPart({0, levels_.seats()}, 0));
    return spare >= 0 ? group_.Send(spare, std::as_bytes(values_)) : absl::OkStatus();
  }

 private:
  struct Part {  // chunks
    int begin = 0, size = 0;
  };

  absl::Status Receive(int from, Take take) {
    return group_.Receive(from, values_.size_bytes(), take);
  }

  std::span<float> GetValues(const Part& part) const {
    const size_t begin = GetChunk(values_.size(), levels_.seats(), part.begin).begin;
    const size_t end = GetChunk(values_.size(), levels_.seats(), part.begin + part.size - 1).end;
    return values_.subspan(begin, end - begin);
  }

  // Sums the part over all ranks that have it, whose seats differ from this level on.
  absl::Status SumPart(const Part& part, size_t level_number) {
    if (level_number == levels_.levels().size()) return absl::OkStatus();
    const RankLevels::Level& level = levels_.levels()[level_number];
    const int own = level.GetDigit(seat_);
    const auto get_part = [&](int digit) {
      const int size = part.size / level.radix;
      return Part{part.begin + digit * size, size};
    };
    const auto get_rank = [&](int digit) { return levels_.GetRank(level.WithDigit(seat_, digit)); };
    const std::span<float> mine = GetValues(get_part(own));
    for (int round = 1; round < level.radix; ++round) {
      const int to = (own + round) % level.radix, from = (own + level.radix - round) % level.radix;
      MUSTER_RETURN_IF_ERROR(group_.Exchange(
          get_rank(to), std::as_bytes(GetValues(get_part(to))), get_rank(from), mine.size_bytes(),
          [&](ConstBytes bytes, size_t offset) { AddPart(bytes, offset, mine.data()); }));
    }
    MUSTER_RETURN_IF_ERROR(SumPart(get_part(own), level_number + 1));
    for (int round = 1; round < level.radix; ++round) {
      const int to = (own + round) % level.radix, from = (own + level.radix - round) % level.radix;
      MUSTER_RETURN_IF_ERROR(group_.Exchange(get_rank(to), std::as_bytes(mine), get_rank(from),
                                             std::as_writable_bytes(GetValues(get_part(from)))));
    }
    return absl::OkStatus();
  }

  Group& group_;
  const RankLevels& levels_;
  const std::span<float> values_;
  const int seat_;
};

// In turns, so that what a rank has in work is not large.
absl::Status InTurns(Group& group, std::span<float> values) {
  const size_t turn = RingTurnFloats(group.size());
  const RankLevels levels(group.size());
  for (size_t begin = 0; begin < values.size(); begin += turn) {
    const std::span<float> some = values.subspan(begin, std::min(turn, values.size() - begin));
    MUSTER_RETURN_IF_ERROR(group.size() > kMostDirectRanks ? LevelTurn(group, levels, some).Run()
                                                           : RingTurn(group, some));
  }
  return absl::OkStatus();
}

}  // namespace

size_t RingTurnFloats(int ranks) { return static_cast<size_t>(ranks) * kRingBytes / sizeof(float); }

bool AreFew(size_t values, int ranks) {
  return values * sizeof(float) * static_cast<size_t>(ranks - 1) <= kDirectBytes;
}

absl::Status AllReduce(Group& group, std::span<float> values) {
  MUSTER_RETURN_IF_ERROR(group.status());
  if (group.size() == 1 || values.empty()) return absl::OkStatus();
  const bool few = AreFew(values.size(), group.size());
  return few ? AllReduceDirectly(group, values) : InTurns(group, values);
}

}  // namespace muster::collective
