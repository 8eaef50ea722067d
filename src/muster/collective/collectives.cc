#include "muster/collective/collectives.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "muster/collective/rank_levels.h"

namespace muster::collective {

namespace {

// Gives every rank the pieces of all ranks in few rounds: in each one a rank passes on the pieces
// that it has, which then are twice as many. In `all` they lie by rank, this rank's piece too.
absl::Status Relay(Group& group, ConstBytes mine, MutableBytes all) {
  const int n = group.size(), rank = group.rank();
  const size_t size = mine.size();
  // The pieces of this rank, the next one, ...: in the order in which they arrive.
  const MutableBytes pieces = group.Relayed(static_cast<size_t>(n) * size);
  std::copy(mine.begin(), mine.end(), pieces.begin());
  for (int have = 1; have < n; have *= 2) {
    const auto count = static_cast<size_t>(std::min(have, n - have));
    MUSTER_RETURN_IF_ERROR(
        group.Exchange((rank + n - have) % n, pieces.first(count * size), (rank + have) % n,
                       pieces.subspan(static_cast<size_t>(have) * size, count * size)));
  }
  const auto before = static_cast<size_t>(n - rank) * size;  // the pieces of ranks up to the last
  std::copy_n(pieces.begin(), before, all.begin() + rank * static_cast<ptrdiff_t>(size));
  std::ranges::copy(pieces.subspan(before), all.begin());
  return group.status();
}

// The same for pieces of different sizes. A message has the sizes of its pieces, then the pieces.
absl::Status Relay(Group& group, uint64_t max_bytes, std::vector<std::vector<std::byte>>* all) {
  const int n = group.size(), rank = group.rank();
  const auto get_rank = [&](int i) { return static_cast<size_t>((rank + i) % n); };
  std::vector<std::byte>&out = group.sent_message(), &in = group.received_message();
  std::vector<uint64_t> sizes(static_cast<size_t>(n));
  for (int have = 1; have < n; have *= 2) {
    const int count = std::min(have, n - have);
    for (int i = 0; i < count; ++i) sizes[static_cast<size_t>(i)] = (*all)[get_rank(i)].size();
    const ConstBytes header = std::as_bytes(std::span(sizes).first(static_cast<size_t>(count)));
    out.assign(header.begin(), header.end());
    for (int i = 0; i < count; ++i) {
      const std::vector<std::byte>& piece = (*all)[get_rank(i)];
      out.insert(out.end(), piece.begin(), piece.end());
    }
    const int from = (rank + have) % n;
    const uint64_t most = static_cast<uint64_t>(count) * (max_bytes + sizeof(uint64_t));
    MUSTER_RETURN_IF_ERROR(group.Exchange((rank + n - have) % n, out, from, most, &in));
    const auto wrong = [&] {
      return group.Accuse(from,
                          StrCat("passes on ", in.size(), " bytes that are not ", count,
                                 " pieces of at most ", max_bytes, " bytes with their sizes"));
    };
    if (in.size() < header.size()) return wrong();
    std::memcpy(sizes.data(), in.data(), header.size());
    ConstBytes rest = ConstBytes(in).subspan(header.size());
    for (int i = 0; i < count; ++i) {
      const uint64_t size = sizes[static_cast<size_t>(i)];
      if (size > max_bytes || size > rest.size()) return wrong();
      const ConstBytes piece = rest.first(size);
      (*all)[get_rank(have + i)].assign(piece.begin(), piece.end());
      rest = rest.subspan(size);
    }
    if (!rest.empty()) return wrong();
  }
  return group.status();
}

}  // namespace

absl::Status AllGather(Group& group, ConstBytes mine, MutableBytes all) {
  const int n = group.size(), rank = group.rank();
  const auto piece = [&](int from) {
    return all.subspan(static_cast<size_t>(from) * mine.size(), mine.size());
  };
  if (n > kMostDirectRanks) return Relay(group, mine, all);
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
  if (n > kMostDirectRanks) return Relay(group, max_bytes, all);
  const ConstBytes mine = (*all)[static_cast<size_t>(rank)];
  for (int round = 1; round < n; ++round) {
    const int from = (rank + n - round) % n;
    MUSTER_RETURN_IF_ERROR(group.Exchange((rank + round) % n, mine, from, max_bytes,
                                          &(*all)[static_cast<size_t>(from)]));
  }
  return group.status();
}

absl::Status Broadcast(Group& group, int root, MutableBytes bytes) {
  std::vector<int> others;
  for (int i = 1; i < group.size(); ++i) others.push_back((root + i) % group.size());
  return Broadcast(group, std::span(&root, 1), others, bytes);
}

absl::Status Broadcast(Group& group, std::span<const int> from, std::span<const int> to,
                       MutableBytes bytes) {
  MUSTER_RETURN_IF_ERROR(group.status());
  if (to.empty()) return absl::OkStatus();
  const auto own = std::find(to.begin(), to.end(), group.rank());
  const bool receives = own != to.end();
  const int next = !receives ? to.front() : std::next(own) == to.end() ? -1 : *std::next(own);
  size_t turn = 0;
  for (size_t begin = 0; begin < bytes.size();
       begin += kBroadcastPiece, turn = (turn + 1) % from.size()) {
    const MutableBytes piece =
        bytes.subspan(begin, std::min(kBroadcastPiece, bytes.size() - begin));
    if (!receives && from[turn] != group.rank()) continue;
    if (receives) {
      const int previous = own == to.begin() ? from[turn] : *std::prev(own);
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
