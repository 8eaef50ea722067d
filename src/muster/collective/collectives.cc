#include "muster/collective/collectives.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <vector>

#include "muster/collective/rank_levels.h"

namespace muster::collective {

namespace {

// Gives every rank the pieces of all ranks in few rounds: in each one a rank passes on the pieces
// that it has, which then are twice as many. `sizes`: of the pieces, by rank. `take` gets the piece
// of each rank, this one's too.
absl::Status Relay(Group& group, ConstBytes mine, std::span<const uint64_t> sizes,
                   const std::function<void(int rank, ConstBytes piece)>& take) {
  const int n = group.size(), rank = group.rank();
  // Where the pieces of this rank, the next one, ... begin: in the order in which they arrive.
  std::vector<size_t> begins = {0};
  for (int i = 0; i < n; ++i) {
    begins.push_back(begins.back() + sizes[static_cast<size_t>((rank + i) % n)]);
  }
  const auto get_begin = [&](int i) { return begins[static_cast<size_t>(i)]; };
  const MutableBytes pieces = group.Relayed(begins.back());
  std::copy(mine.begin(), mine.end(), pieces.begin());
  for (int have = 1; have < n; have *= 2) {
    const int count = std::min(have, n - have);
    MUSTER_RETURN_IF_ERROR(
        group.Exchange((rank + n - have) % n, pieces.first(get_begin(count)), (rank + have) % n,
                       pieces.subspan(get_begin(have), get_begin(have + count) - get_begin(have))));
  }
  for (int i = 0; i < n; ++i) {
    take((rank + i) % n, pieces.subspan(get_begin(i), get_begin(i + 1) - get_begin(i)));
  }
  return group.status();
}

}  // namespace

absl::Status AllGather(Group& group, ConstBytes mine, MutableBytes all) {
  const int n = group.size(), rank = group.rank();
  const auto piece = [&](int from) {
    return all.subspan(static_cast<size_t>(from) * mine.size(), mine.size());
  };
  if (n > kMostDirectRanks) {
    const std::vector<uint64_t> sizes(static_cast<size_t>(n), mine.size());
    return Relay(group, mine, sizes, [&](int from, ConstBytes bytes) {
      if (!bytes.empty()) std::memmove(piece(from).data(), bytes.data(), bytes.size());
    });
  }
  if (!mine.empty() && piece(rank).data() != mine.data()) {
    std::memcpy(piece(rank).data(), mine.data(), mine.size());
  }
  // In round k every rank sends to the rank k after it: no two send to the same rank at once.
  for (int round = 1; round < n; ++round) {
    const int from = (rank + n - round) % n;
    MUSTER_RETURN_IF_ERROR(group.Exchange((rank + round) % n, mine, from, piece(from)));
  }
  return group.status();
}

absl::Status AllGather(Group& group, uint64_t max_bytes, std::vector<std::vector<std::byte>>* all) {
  const int n = group.size(), rank = group.rank();
  all->resize(static_cast<size_t>(n));
  const ConstBytes mine = (*all)[static_cast<size_t>(rank)];
  const uint64_t size = mine.size();
  std::vector<uint64_t> sizes(static_cast<size_t>(n));
  MUSTER_RETURN_IF_ERROR(AllGather(group, std::as_bytes(std::span(&size, 1)),
                                   std::as_writable_bytes(std::span(sizes))));
  for (int from = 0; from < n; ++from) {
    const uint64_t bytes = sizes[static_cast<size_t>(from)];
    if (bytes > max_bytes) {
      return group.Accuse(
          from, StrCat("announces ", bytes, " bytes, but a rank has at most ", max_bytes));
    }
  }
  if (n > kMostDirectRanks) {
    return Relay(group, mine, sizes, [&](int from, ConstBytes bytes) {
      if (from != rank) (*all)[static_cast<size_t>(from)].assign(bytes.begin(), bytes.end());
    });
  }
  for (int from = 0; from < n; ++from) {
    if (from == rank) continue;
    (*all)[static_cast<size_t>(from)].resize(sizes[static_cast<size_t>(from)]);
  }
  for (int round = 1; round < n; ++round) {
    const int from = (rank + n - round) % n;
    MUSTER_RETURN_IF_ERROR(group.Exchange((rank + round) % n, mine, from,
                                          MutableBytes((*all)[static_cast<size_t>(from)])));
  }
  return absl::OkStatus();
}

absl::Status Broadcast(Group& group, int root, MutableBytes bytes) {
  std::vector<int> chain;
  for (int i = 0; i < group.size(); ++i) chain.push_back((root + i) % group.size());
  return Broadcast(group, chain, bytes);
}

absl::Status Broadcast(Group& group, std::span<const int> chain, MutableBytes bytes) {
  MUSTER_RETURN_IF_ERROR(group.status());
  const auto own = std::find(chain.begin(), chain.end(), group.rank());
  const int previous = own == chain.begin() ? -1 : *std::prev(own);
  const int next = std::next(own) == chain.end() ? -1 : *std::next(own);
  constexpr size_t kPiece = size_t{256} << 10;
  for (size_t begin = 0; begin < bytes.size(); begin += kPiece) {
    const MutableBytes piece = bytes.subspan(begin, std::min(kPiece, bytes.size() - begin));
    if (previous >= 0) {
      MUSTER_RETURN_IF_ERROR(
          group.Receive(previous, piece.size(), [&](ConstBytes part, size_t offset) {
            std::memcpy(piece.data() + offset, part.data(), part.size());
          }));
    }
    if (next >= 0) MUSTER_RETURN_IF_ERROR(group.Send(next, piece));
  }
  return absl::OkStatus();
}

absl::Status Barrier(Group& group) {
  MUSTER_RETURN_IF_ERROR(group.status());
  const int n = group.size(), rank = group.rank();
  for (int distance = 1; distance < n; distance *= 2) {
    MUSTER_RETURN_IF_ERROR(
        group.Exchange((rank + distance) % n, {}, (rank + n - distance) % n, MutableBytes()));
  }
  return absl::OkStatus();
}

}  // namespace muster::collective
