#include "muster/collective/collectives.h"

#include <cstdint>
#include <cstring>

namespace muster::collective {

absl::Status AllGather(Group& group, ConstBytes mine, MutableBytes all) {
  const int n = group.size(), rank = group.rank();
  const auto piece = [&](int from) {
    return all.subspan(static_cast<size_t>(from) * mine.size(), mine.size());
  };
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
      return group.Accuse(from,
                          StrCat("announces ", bytes, " bytes, of which it can have ", max_bytes));
    }
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
  MUSTER_RETURN_IF_ERROR(group.status());
  const int n = group.size();
  if (n == 1) return absl::OkStatus();
  // A chain that begins at the root: each rank forwards the pieces as they come, so that the
  // broadcast takes little longer than one transfer.
  const int place = (group.rank() - root + n) % n;
  const int next = (group.rank() + 1) % n, previous = (group.rank() + n - 1) % n;
  constexpr size_t kPiece = size_t{256} << 10;
  for (size_t begin = 0; begin < bytes.size(); begin += kPiece) {
    const MutableBytes piece = bytes.subspan(begin, std::min(kPiece, bytes.size() - begin));
    if (place > 0) {
      MUSTER_RETURN_IF_ERROR(
          group.Receive(previous, piece.size(), [&](ConstBytes part, size_t offset) {
            std::memcpy(piece.data() + offset, part.data(), part.size());
          }));
    }
    if (place + 1 < n) MUSTER_RETURN_IF_ERROR(group.Send(next, piece));
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
