#include "muster/train/allreduce/reduce_sink.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "muster/base/byte_reader.h"
#include "muster/collective/collectives.h"
#include "muster/math/rows.h"
#include "muster/math/vector.h"
#include "muster/optim/row_layout.h"

namespace muster::train {
namespace {

using collective::RowList;

constexpr uint64_t kMaxNoteBytes = uint64_t{1} << 20;
// The most bytes that the entries of a table can have in one batch of a replica, with one entry for
// each id.
constexpr uint64_t kMaxEntryBytes = uint64_t{1} << 30;
constexpr size_t kLosses = 2;  // after the gradients and statistics in values_

void Append(std::vector<std::byte>* bytes, const void* data, size_t size) {
  const auto* const from = static_cast<const std::byte*>(data);
  bytes->insert(bytes->end(), from, from + size);
}

// The number of the rows, the rows, and the values.
void Append(std::vector<std::byte>* bytes, const RowList& list) {
  const auto count = static_cast<uint32_t>(list.rows.size());
  Append(bytes, &count, sizeof count);
  Append(bytes, list.rows.data(), list.rows.size_bytes());
  Append(bytes, list.values.data(), list.values.size_bytes());
}

absl::Status Damaged(std::string_view what) {
  return absl::DataLossError(StrCat("sent gradients that are damaged: ", what));
}

size_t Sum(std::span<const size_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), size_t{0});
}

}  // namespace

ReduceSink::ReduceSink(std::span<const engine::VariableSpec> specs,
                       std::span<const size_t> metric_sizes)
    : specs_(specs),
      metric_sizes_(metric_sizes),
      has_tables_(std::ranges::any_of(specs, [](const engine::VariableSpec& spec) {
        return spec.kind == engine::VariableKind::kTable;
      })) {
  size_t most = kLosses + Sum(metric_sizes);
  for (const auto& spec : specs) {
    if (spec.kind != engine::VariableKind::kTable) most += static_cast<size_t>(spec.elements());
  }
  values_.resize(most);
}

int64_t ReduceSink::GradientCols(int variable) const {
  return optim::RowLayout{.cols = specs_[static_cast<size_t>(variable)].shape[1],
                          .squares = WantsSquares(variable)}
      .width();
}

uint64_t ReduceSink::MaxRows(int variable) const {
  if (!WantsEntries(variable)) {
    return static_cast<uint64_t>(specs_[static_cast<size_t>(variable)].shape[0]);
  }
  const auto cols = static_cast<uint64_t>(GradientCols(variable));
  return kMaxEntryBytes / (sizeof(int32_t) + cols * sizeof(float));
}

void ReduceSink::Begin(collective::Group& group, engine::GradientSink& next, double share,
                       bool early) {
  group_ = &group;
  next_ = &next;
  share_ = share;
  entries_.clear();
  size_ = 0;
  // In a large group the sums of rows are sent, and whether there are any is known by the losses.
  const bool sends_sums = has_tables_ && group.size() > collective::kMostDirectRanks;
  together_ = group.size() > 1 && !sends_sums && collective::AreFew(values_.size(), group.size());
  mine_.resize(together_ ? values_.size() * sizeof(float) : 0);
  sum_.Begin(group, values_, early);
}

void ReduceSink::Add(Kind kind, int variable, size_t size) {
  entries_.push_back({kind, variable, size_, size});
  size_ += size;
  sum_.Ready(size_);
}

void ReduceSink::Dense(int variable, std::span<const float> gradient) {
  std::copy(gradient.begin(), gradient.end(), values_.data() + size_);
  Add(Kind::kDense, variable, gradient.size());
}

void ReduceSink::Rows(int variable, std::span<const int32_t> rows,
                      std::span<const float> gradient) {
  entries_.push_back({Kind::kRows, variable});
  Append(&mine_, {.rows = rows, .values = gradient});
}

void ReduceSink::Statistic(int variable, std::span<const float> value) {
  std::transform(value.begin(), value.end(), values_.data() + size_,
                 [&](float each) { return static_cast<float>(double{each} * share_); });
  Add(Kind::kStatistic, variable, value.size());
}

absl::Status ReduceSink::Reduce(engine::StepResult* result, std::string_view note,
                                std::vector<std::string>* notes) {
  // A replica whose loss is not finite has no gradients, but must not hold up the others: it gives
  // zeros. The sum of the losses is then not finite either.
  std::fill(values_.data() + size_, values_.data() + values_.size(), 0.0F);
  float* const losses = values_.data() + values_.size() - Sum(metric_sizes_) - kLosses;
  losses[0] = static_cast<float>(result->loss);
  losses[1] = static_cast<float>(result->data_loss);
  WriteMetrics(*result, losses + kLosses);
  if (together_) {
    std::memcpy(mine_.data(), values_.data(), values_.size() * sizeof(float));
    MUSTER_RETURN_IF_ERROR(Gather(note, notes));
    SumValues();
  } else {
    MUSTER_RETURN_IF_ERROR(sum_.Finish());
    // All ranks have the same sum, and send no rows then.
    if (!std::isfinite(losses[0])) mine_.clear();
  }
  const bool is_finite = std::isfinite(losses[0]);
  if (!is_finite) entries_.clear();
  if (!together_) MUSTER_RETURN_IF_ERROR(Gather(note, notes));
  result->loss = double{losses[0]};
  result->data_loss = double{losses[1]};
  ReadMetrics(losses + kLosses, result);
  for (int from = 0; is_finite && from < group_->size(); ++from) {
    const absl::Status status = ParseLists(from);
    if (!status.ok()) return group_->Accuse(from, ToStd(status.message()));
  }
  return absl::OkStatus();
}

// A replica without rows has no metric states, and adds nothing.
void ReduceSink::WriteMetrics(const engine::StepResult& result, float* to) const {
  for (size_t i = 0; i < result.metric_states.size() && i < metric_sizes_.size(); ++i) {
    const std::vector<float>& state = result.metric_states[i];
    std::copy_n(state.begin(), std::min(state.size(), metric_sizes_[i]), to);
    to += metric_sizes_[i];
  }
}

void ReduceSink::ReadMetrics(const float* from, engine::StepResult* result) const {
  result->metric_states.resize(metric_sizes_.size());
  for (size_t i = 0; i < metric_sizes_.size(); ++i) {
    result->metric_states[i].assign(from, from + metric_sizes_[i]);
    from += metric_sizes_[i];
  }
}

// The most bytes that a rank can send: its note, and all rows of every table that has gradients.
uint64_t ReduceSink::MaxBytes() const {
  uint64_t bytes = kMaxNoteBytes + values_.size() * sizeof(float);
  for (const Entry& entry : entries_) {
    if (entry.kind != Kind::kRows) continue;
    const uint64_t rows = MaxRows(entry.variable);
    const auto cols = static_cast<uint64_t>(GradientCols(entry.variable));
    bytes += sizeof(uint32_t) + rows * (sizeof(int32_t) + cols * sizeof(float));
  }
  return bytes;
}

// Replaces this rank's rows by the sums of those that it owns: what it then sends to all is
// shorter, since several ranks have many rows in common. Entries that are not summed stay.
absl::Status ReduceSink::KeepOwnedRows() {
  std::vector<collective::RowTable> tables;
  std::vector<RowList> sums;
  const auto is_summed = [this](const Entry& entry) {
    return entry.kind == Kind::kRows && !WantsEntries(entry.variable);
  };
  const auto rank = static_cast<size_t>(group_->rank());
  ByteReader reader(mine_);
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].kind != Kind::kRows) continue;
    const int variable = entries_[i].variable;
    RowList& list = lists_[i][rank];
    uint32_t count = 0;
    (void)(reader.Read(&count) && reader.ReadArray(count, &list.rows) &&
           reader.ReadArray(uint64_t{count} * static_cast<uint64_t>(GradientCols(variable)),
                            &list.values));
    if (!is_summed(entries_[i])) continue;
    tables.push_back(
        {.rows = specs_[static_cast<size_t>(variable)].shape[0], .cols = GradientCols(variable)});
    sums.push_back(list);
  }
  if (tables.empty()) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(reduce_rows_.Reduce(*group_, tables, sums, numbers_));
  owned_.clear();
  size_t summed = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].kind != Kind::kRows) continue;
    Append(&owned_, is_summed(entries_[i]) ? sums[summed++] : lists_[i][rank]);
  }
  mine_.swap(owned_);
  return absl::OkStatus();
}

absl::Status ReduceSink::Gather(std::string_view note, std::vector<std::string>* notes) {
  lists_.resize(entries_.size());
  for (auto& lists : lists_) lists.assign(static_cast<size_t>(group_->size()), RowList());
  if (!together_ && group_->size() > collective::kMostDirectRanks) {
    MUSTER_RETURN_IF_ERROR(KeepOwnedRows());
  }
  const auto size = static_cast<uint32_t>(note.size());
  Append(&mine_, note.data(), note.size());
  Append(&mine_, &size, sizeof size);
  all_.resize(static_cast<size_t>(group_->size()));
  rows_of_.resize(all_.size());
  notes->resize(all_.size());
  all_[static_cast<size_t>(group_->rank())].swap(mine_);
  MUSTER_RETURN_IF_ERROR(collective::AllGather(*group_, MaxBytes(), &all_));
  for (int from = 0; from < group_->size(); ++from) {
    const absl::Status status = SplitNote(from, &(*notes)[static_cast<size_t>(from)]);
    if (!status.ok()) return group_->Accuse(from, ToStd(status.message()));
  }
  return absl::OkStatus();
}

absl::Status ReduceSink::SplitNote(int rank, std::string* note) {
  const std::span<const std::byte> bytes = all_[static_cast<size_t>(rank)];
  const size_t values = together_ ? values_.size() * sizeof(float) : 0;
  uint32_t size = 0;
  if (bytes.size() < values + sizeof size) return Damaged("they are cut off");
  const size_t end = bytes.size() - sizeof size;
  std::memcpy(&size, bytes.data() + end, sizeof size);
  if (size > end - values) return Damaged("they do not end with a note");
  note->assign(reinterpret_cast<const char*>(bytes.data()) + end - size, size);
  rows_of_[static_cast<size_t>(rank)] = bytes.subspan(values, end - size - values);
  return absl::OkStatus();
}

// In the order of ranks, as AllReduce does.
void ReduceSink::SumValues() {
  const size_t bytes = values_.size() * sizeof(float);
  std::memcpy(values_.data(), all_.front().data(), bytes);
  for (size_t from = 1; from < all_.size(); ++from) {
    math::AddTo(reinterpret_cast<const float*>(all_[from].data()), values_.data(), values_.size());
  }
}

absl::Status ReduceSink::ParseLists(int rank) {
  // All values have 4 bytes each, and the memory is aligned for them.
  ByteReader reader(rows_of_[static_cast<size_t>(rank)]);
  uint32_t count = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].kind != Kind::kRows) continue;
    const int variable = entries_[i].variable;
    const auto& spec = specs_[static_cast<size_t>(variable)];
    RowList& list = lists_[i][static_cast<size_t>(rank)];
    if (!reader.Read(&count) || count > MaxRows(variable) || !reader.ReadArray(count, &list.rows) ||
        !reader.ReadArray(uint64_t{count} * static_cast<uint64_t>(GradientCols(variable)),
                          &list.values)) {
      return Damaged(StrCat("cut off in ", spec.name));
    }
    if (const std::optional<int32_t> row = math::RowOutside(list.rows, spec.shape[0])) {
      return Damaged(StrCat("row ", *row, " of ", spec.name, ", which has ", spec.shape[0]));
    }
  }
  return reader.done() ? absl::OkStatus() : Damaged("more bytes follow the rows");
}

RowList ReduceSink::JoinedEntries(const std::vector<RowList>& lists) {
  entry_rows_.clear();
  entry_values_.clear();
  for (const RowList& list : lists) {
    entry_rows_.insert(entry_rows_.end(), list.rows.begin(), list.rows.end());
    entry_values_.insert(entry_values_.end(), list.values.begin(), list.values.end());
  }
  return {.rows = entry_rows_, .values = entry_values_};
}

void ReduceSink::Give() {
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    const int variable = entry.variable;
    if (entry.kind == Kind::kRows) {
      const int64_t table_rows = specs_[static_cast<size_t>(variable)].shape[0];
      const RowList sum = WantsEntries(variable)
                              ? JoinedEntries(lists_[i])
                              : rows_.Sum(lists_[i], table_rows, GradientCols(variable), numbers_);
      next_->Rows(variable, sum.rows, sum.values);
      continue;
    }
    const std::span<const float> values = std::span(values_).subspan(entry.begin, entry.size);
    if (entry.kind == Kind::kDense) {
      next_->Dense(variable, values);
    } else {
      next_->Statistic(variable, values);
    }
  }
}

}  // namespace muster::train
