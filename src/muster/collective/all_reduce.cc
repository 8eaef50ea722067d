#include <algorithm>
#include <cstring>

#include "muster/collective/collectives.h"
#include "muster/math/vector.h"

namespace muster::collective {
namespace {

// If a rank sends at most this many bytes in total, it sends its values directly to every other
// rank: each rank then waits once instead of 2 (n-1) times.
constexpr size_t kDirectBytes = size_t{32} << 10;
// This many bytes per rank go around the ring at a time, so that a chunk is still in the core's
// cache when it is forwarded and when its sum comes back. The order of sums depends on this number.
constexpr size_t kRingBytes = size_t{256} << 10;
constexpr size_t kChunkFloats = 16;  // chunks of the ring begin on a cache line

// A range of values that goes around the ring as one piece.
struct Chunk {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
};

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

absl::Status Ring(Group& group, std::span<float> values) {
  const size_t turn = RingTurnFloats(group.size());
  for (size_t begin = 0; begin < values.size(); begin += turn) {
    const size_t size = std::min(turn, values.size() - begin);
    MUSTER_RETURN_IF_ERROR(RingTurn(group, values.subspan(begin, size)));
  }
  return absl::OkStatus();
}

}  // namespace

size_t RingTurnFloats(int ranks) { return static_cast<size_t>(ranks) * kRingBytes / sizeof(float); }

absl::Status AllReduce(Group& group, std::span<float> values) {
  MUSTER_RETURN_IF_ERROR(group.status());
  if (group.size() == 1 || values.empty()) return absl::OkStatus();
  const bool few = values.size_bytes() * static_cast<size_t>(group.size() - 1) <= kDirectBytes;
  return few ? AllReduceDirectly(group, values) : Ring(group, values);
}

}  // namespace muster::collective
