#include "muster/collective/reduce_rows.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "muster/base/byte_reader.h"
#include "muster/base/strings.h"
#include "muster/math/rows.h"

namespace muster::collective {

absl::Status ReduceRows::Reduce(Group& group, std::span<const RowTable> tables,
                                std::span<RowList> lists, math::RowNumbers& numbers) {
  tables_ = tables;
  lists_ = lists;
  numbers_ = &numbers;
  sums_.resize(tables.size());
  const RankLevels levels(group.size());
  const int rank = group.rank(), spare = levels.GetSpare(rank);
  if (levels.IsSpare(rank)) {
    Write({.stride = 1, .radix = 1}, 0, &spare_);
    for (RowList& list : lists) list = RowList();
    return Send(group, rank + 1, spare_);
  }
  if (spare >= 0) {
    MUSTER_RETURN_IF_ERROR(Receive(group, spare, &spare_));
    Lists given(tables.size());
    for (size_t i = 0; i < tables.size(); ++i) given[i].push_back(lists[i]);
    MUSTER_RETURN_IF_ERROR(Read(group, spare, spare_, &given));
    Sum(given);
  }
  for (const RankLevels::Level& level : levels.levels()) {
    MUSTER_RETURN_IF_ERROR(SumLevel(group, levels, level));
  }
  return absl::OkStatus();
}

absl::Status ReduceRows::SumLevel(Group& group, const RankLevels& levels,
                                  const RankLevels::Level& level) {
  const auto radix = static_cast<size_t>(level.radix);
  const int seat = levels.GetSeat(group.rank()), own = level.GetDigit(seat);
  out_.resize(std::max(out_.size(), radix));
  in_.resize(std::max(in_.size(), radix));
  for (int digit = 0; digit < level.radix; ++digit) {
    Write(level, digit, &out_[static_cast<size_t>(digit)]);
  }
  in_[static_cast<size_t>(own)].swap(out_[static_cast<size_t>(own)]);
  const auto get_rank = [&](int digit) { return levels.GetRank(level.WithDigit(seat, digit)); };
  for (int round = 1; round < level.radix; ++round) {
    const int to = (own + round) % level.radix, from = (own + level.radix - round) % level.radix;
    MUSTER_RETURN_IF_ERROR(group.Exchange(get_rank(to), out_[static_cast<size_t>(to)],
                                          get_rank(from), GetMost(),
                                          &in_[static_cast<size_t>(from)]));
  }
  Lists given(tables_.size());
  for (int digit = 0; digit < level.radix; ++digit) {
    MUSTER_RETURN_IF_ERROR(Read(group, get_rank(digit), in_[static_cast<size_t>(digit)], &given));
  }
  Sum(given);
  return absl::OkStatus();
}

// Each table is written as the number of its rows, the rows, and the values.
void ReduceRows::Write(const RankLevels::Level& level, int digit, Bytes* bytes) const {
  bytes->clear();
  const auto is_in = [&](int32_t row) { return level.GetDigit(row) == digit; };
  for (size_t i = 0; i < tables_.size(); ++i) {
    const RowList& list = lists_[i];
    const size_t row_bytes = static_cast<size_t>(tables_[i].cols) * sizeof(float);
    const auto count = static_cast<uint32_t>(std::ranges::count_if(list.rows, is_in));
    const size_t at = bytes->size();
    bytes->resize(at + sizeof count + count * (sizeof(int32_t) + row_bytes));
    std::byte* row_at = bytes->data() + at;
    std::memcpy(row_at, &count, sizeof count);
    row_at += sizeof count;
    std::byte* value_at = row_at + count * sizeof(int32_t);
    for (size_t k = 0; k < list.rows.size(); ++k) {
      if (!is_in(list.rows[k])) continue;
      std::memcpy(row_at, &list.rows[k], sizeof(int32_t));
      std::memcpy(value_at, list.values.data() + k * static_cast<size_t>(tables_[i].cols),
                  row_bytes);
      row_at += sizeof(int32_t);
      value_at += row_bytes;
    }
  }
}

// The size first.
absl::Status ReduceRows::Send(Group& group, int to, const Bytes& out) const {
  const uint64_t size = out.size();
  MUSTER_RETURN_IF_ERROR(group.Send(to, std::as_bytes(std::span(&size, 1))));
  return group.Send(to, out);
}

absl::Status ReduceRows::Receive(Group& group, int from, Bytes* in) const {
  uint64_t announced = 0;
  const auto receive = [&](MutableBytes to) {
    return group.Receive(from, to.size(), [&](ConstBytes part, size_t offset) {
      std::memcpy(to.data() + offset, part.data(), part.size());
    });
  };
  MUSTER_RETURN_IF_ERROR(receive(std::as_writable_bytes(std::span(&announced, 1))));
  MUSTER_RETURN_IF_ERROR(Resize(group, from, announced, in));
  return receive(*in);
}

uint64_t ReduceRows::GetMost() const {
  uint64_t most = 0;
  for (const RowTable& table : tables_) {
    const auto row = sizeof(int32_t) + static_cast<uint64_t>(table.cols) * sizeof(float);
    most += sizeof(uint32_t) + static_cast<uint64_t>(table.rows) * row;
  }
  return most;
}

absl::Status ReduceRows::Resize(Group& group, int from, uint64_t announced, Bytes* in) const {
  if (announced > GetMost()) {
    return group.Accuse(
        from, StrCat("announces ", announced, " bytes of rows, but its tables have ", GetMost()));
  }
  in->resize(announced);
  return absl::OkStatus();
}

absl::Status ReduceRows::Read(Group& group, int from, const Bytes& bytes, Lists* lists) const {
  ByteReader reader(bytes);
  for (size_t i = 0; i < tables_.size(); ++i) {
    const RowTable& table = tables_[i];
    uint32_t count = 0;
    RowList list;
    if (!reader.Read(&count) || count > table.rows || !reader.ReadArray(count, &list.rows) ||
        !reader.ReadArray(uint64_t{count} * static_cast<uint64_t>(table.cols), &list.values)) {
      return group.Accuse(from, StrCat("sent rows that are cut off in table ", i));
    }
    if (const std::optional<int32_t> row = math::RowOutside(list.rows, table.rows)) {
      return group.Accuse(from, StrCat("sent row ", *row, " of a table that has ", table.rows));
    }
    (*lists)[i].push_back(list);
  }
  if (!reader.done()) return group.Accuse(from, "sent bytes after its rows");
  return absl::OkStatus();
}

void ReduceRows::Sum(const Lists& lists) {
  for (size_t i = 0; i < tables_.size(); ++i) {
    lists_[i] = sums_[i].Sum(lists[i], tables_[i].rows, tables_[i].cols, *numbers_);
  }
}

}  // namespace muster::collective
