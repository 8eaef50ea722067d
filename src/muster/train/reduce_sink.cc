#include "muster/train/reduce_sink.h"

#include <cmath>
#include <cstring>

#include "muster/collective/collectives.h"

namespace muster::train {
namespace {

using collective::RowList;

constexpr size_t kLosses = 2;  // in front of the values that are summed

void Append(std::vector<std::byte>* bytes, const void* data, size_t size) {
  const auto* const from = static_cast<const std::byte*>(data);
  bytes->insert(bytes->end(), from, from + size);
}

// Reads what Append wrote; every size is checked against what is there.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  bool Take(uint64_t count, std::span<const T>* values) {
    if (count > bytes_.size() / sizeof(T)) return false;
    // Everything that is sent is of 4 byte values, from memory that begins on 8.
    *values = {reinterpret_cast<const T*>(bytes_.data()), static_cast<size_t>(count)};
    bytes_ = bytes_.subspan(values->size_bytes());
    return true;
  }
  bool TakeCount(uint32_t* count) {
    std::span<const uint32_t> one;
    if (!Take(1, &one)) return false;
    *count = one[0];
    return true;
  }
  bool empty() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

size_t ReduceSink::Cols(int variable) const {
  return static_cast<size_t>(specs_[static_cast<size_t>(variable)].shape[1]);
}

void ReduceSink::Begin(double share) {
  share_ = share;
  entries_.clear();
  values_.assign(kLosses, 0);
  rows_.clear();
  row_values_.clear();
}

void ReduceSink::Dense(int variable, std::span<const float> gradient) {
  entries_.push_back({Kind::kDense, variable, values_.size(), gradient.size()});
  values_.insert(values_.end(), gradient.begin(), gradient.end());
}

void ReduceSink::Rows(int variable, std::span<const int32_t> rows,
                      std::span<const float> gradient) {
  entries_.push_back({Kind::kRows, variable, rows_.size(), rows.size(), row_values_.size()});
  rows_.insert(rows_.end(), rows.begin(), rows.end());
  row_values_.insert(row_values_.end(), gradient.begin(), gradient.end());
}

void ReduceSink::Statistic(int variable, std::span<const float> value) {
  entries_.push_back({Kind::kStatistic, variable, values_.size(), value.size()});
  for (const float each : value) {
    values_.push_back(static_cast<float>(double{each} * share_));
  }
}

absl::Status ReduceSink::Reduce(collective::Group& group, engine::StepResult* result,
                                std::string_view note, std::vector<std::string>* notes,
                                engine::GradientSink& next) {
  const bool finite = std::isfinite(result->loss);
  // Who has no gradient for want of a finite loss must not hold the others up: their sum is as
  // little a number.
  values_[0] = static_cast<float>(result->loss);
  values_[1] = static_cast<float>(result->data_loss);
  MUSTER_RETURN_IF_ERROR(collective::AllReduce(group, std::span(values_).first(kLosses)));
  result->loss = double{values_[0]};
  result->data_loss = double{values_[1]};
  if (!finite || !std::isfinite(result->loss)) {
    entries_.clear();
    rows_.clear();
  } else {
    MUSTER_RETURN_IF_ERROR(collective::AllReduce(group, std::span(values_).subspan(kLosses)));
  }
  MUSTER_RETURN_IF_ERROR(GatherRows(group, note, notes));
  Give(next);
  return absl::OkStatus();
}

// A note's length and bytes, then for each table how many rows, rows, values.
absl::Status ReduceSink::GatherRows(collective::Group& group, std::string_view note,
                                    std::vector<std::string>* notes) {
  mine_.clear();
  const auto note_size = static_cast<uint32_t>(note.size());
  Append(&mine_, &note_size, sizeof note_size);
  Append(&mine_, note.data(), note.size());
  mine_.resize((mine_.size() + 3) / 4 * 4);
  for (const Entry& entry : entries_) {
    if (entry.kind != Kind::kRows) continue;
    const auto count = static_cast<uint32_t>(entry.size);
    Append(&mine_, &count, sizeof count);
    Append(&mine_, rows_.data() + entry.begin, entry.size * sizeof(int32_t));
    Append(&mine_, row_values_.data() + entry.gradient,
           entry.size * Cols(entry.variable) * sizeof(float));
  }
  MUSTER_RETURN_IF_ERROR(collective::AllGather(group, mine_, &all_));
  notes->resize(all_.size());
  lists_.resize(entries_.size());
  for (auto& lists : lists_) lists.assign(all_.size(), RowList());
  for (size_t rank = 0; rank < all_.size(); ++rank) {
    const absl::Status status = TakeLists(static_cast<int>(rank), all_[rank], &(*notes)[rank]);
    if (!status.ok()) return group.Fail(status);
  }
  return absl::OkStatus();
}

absl::Status ReduceSink::TakeLists(int rank, std::span<const std::byte> bytes, std::string* note) {
  const auto wrong = [&](std::string_view what) {
    return absl::DataLossError(StrCat("the gradients of rank ", rank, ": ", what));
  };
  Reader reader(bytes);
  uint32_t count = 0;
  std::span<const uint32_t> words;
  if (!reader.TakeCount(&count) || !reader.Take((uint64_t{count} + 3) / 4, &words)) {
    return wrong("cut in the note");
  }
  note->assign(reinterpret_cast<const char*>(words.data()), count);
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].kind != Kind::kRows) continue;
    const int variable = entries_[i].variable;
    const auto& spec = specs_[static_cast<size_t>(variable)];
    RowList& list = lists_[i][static_cast<size_t>(rank)];
    if (!reader.TakeCount(&count) || !reader.Take(count, &list.rows) ||
        !reader.Take(uint64_t{count} * Cols(variable), &list.values)) {
      return wrong(StrCat("cut in ", spec.name));
    }
    for (const int32_t row : list.rows) {
      if (row < 0 || row >= spec.shape[0]) {
        return wrong(StrCat("row ", row, " of ", spec.name, ", which has ", spec.shape[0]));
      }
    }
  }
  return reader.empty() ? absl::OkStatus() : wrong("more than was due");
}

void ReduceSink::Give(engine::GradientSink& next) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    const int variable = entry.variable;
    if (entry.kind == Kind::kRows) {
      const auto [found, made] =
          sums_.try_emplace(variable, specs_[static_cast<size_t>(variable)].shape[0],
                            specs_[static_cast<size_t>(variable)].shape[1]);
      const RowList sum = found->second.Sum(lists_[i]);
      next.Rows(variable, sum.rows, sum.values);
      continue;
    }
    const std::span<const float> values = std::span(values_).subspan(entry.begin, entry.size);
    if (entry.kind == Kind::kDense) {
      next.Dense(variable, values);
    } else {
      next.Statistic(variable, values);
    }
  }
}

}  // namespace muster::train
