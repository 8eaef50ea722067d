#include "muster/tables/dynamic_table.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "muster/base/huge_pages.h"
#include "muster/base/random.h"

namespace muster::tables {
namespace {

constexpr int64_t kLooksPerLife = 8;
constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();

// Converts the negative number of a key without a row to its index in waiting_.
size_t WaitsAt(int32_t place) { return static_cast<size_t>(-1 - int64_t{place}); }

// Removes `row` from `values`, which has rows of `cols` floats: the last row takes its place.
template <class T>
void RemoveByLast(std::vector<T>* values, size_t row, size_t cols) {
  const size_t last = values->size() - cols;
  std::copy_n(values->begin() + static_cast<ptrdiff_t>(last), cols,
              values->begin() + static_cast<ptrdiff_t>(row * cols));
  values->resize(last);
}

}  // namespace

DynamicTable::DynamicTable(const DynamicTableSpec& spec, int shares)
    : spec_(spec),
      cols_(static_cast<size_t>(spec.cols)),
      gradient_cols_(static_cast<size_t>(spec.gradient_layout().width())),
      capacity_(spec.growth.capacity == 0 ? kMostRows
                                          : (spec.growth.capacity + shares - 1) / shares),
      slots_(spec.slots()) {}

void DynamicTable::Clear() {
  ++changes_;
  places_.clear();
  keys_.clear();
  last_steps_.clear();
  weights_.clear();
  for (auto& slot : slots_) slot.clear();
  waiting_.clear();
}

void DynamicTable::Initialize(int64_t key, float* row) const {
  if (spec_.growth.stddev == 0) {
    std::fill_n(row, cols_, 0.0f);
    return;
  }
  // Substream 0 belongs to variables of a fixed size.
  RandomStream random(spec_.growth.seed, RandomPurpose::kInitialWeights, static_cast<uint64_t>(key),
                      spec_.growth.variable + 1);
  for (size_t i = 0; i < cols_; ++i) {
    row[i] = static_cast<float>(random.TruncatedNormal() * spec_.growth.stddev);
  }
}

void DynamicTable::Read(std::span<const int64_t> keys, float* rows) const {
  for (const int64_t key : keys) {
    const auto found = places_.find(key);
    if (found != places_.end() && found->second >= 0) {
      std::memcpy(rows, weights_.data() + static_cast<size_t>(found->second) * cols_,
                  cols_ * sizeof(float));
    } else {
      const int64_t count = found == places_.end() ? 0 : waiting_[WaitsAt(found->second)].count;
      if (count + 1 >= spec_.growth.admit_after && has_room()) {
        Initialize(key, rows);
      } else {
        std::fill_n(rows, cols_, 0.0f);
      }
    }
    rows += cols_;
  }
}

int32_t DynamicTable::NewRow(int64_t key, int64_t step) {
  const auto row = static_cast<int32_t>(keys_.size());
  keys_.push_back(key);
  last_steps_.push_back(step);
  ReserveMore(cols_, &weights_);
  weights_.resize(weights_.size() + cols_);
  Initialize(key, weights_.data() + static_cast<size_t>(row) * cols_);
  for (size_t k = 0; k < slots_.size(); ++k) {
    ReserveMore(cols_, &slots_[k]);
    slots_[k].resize(weights_.size(), spec_.optimizer->slots()[k].initial_value);
  }
  return row;
}

// Counts the step for the key, and admits the key if it is due. Returns its row, or -1.
int32_t DynamicTable::Admit(int64_t key, int64_t step) {
  const auto [found, is_new] = places_.try_emplace(key, -1);
  int32_t& place = found->second;
  if (!is_new && place >= 0) {
    last_steps_[static_cast<size_t>(place)] = step;
    return place;
  }
  const size_t waits = is_new ? waiting_.size() : WaitsAt(place);
  if (is_new) waiting_.push_back({.key = key});
  waiting_[waits].last_step = step;
  const int64_t count = ++waiting_[waits].count;
  if (has_room() && count >= spec_.growth.admit_after) {
    RemoveWaiting(waits);
    return place = NewRow(key, step);
  }
  if (has_room() || !is_new) {
    place = ~static_cast<int32_t>(waits);
    return -1;
  }
  // A full table uses no memory for new keys, which could only wait.
  waiting_.pop_back();
  places_.erase(found);
  return -1;
}

void DynamicTable::RemoveWaiting(size_t place) {
  if (place + 1 < waiting_.size()) {
    waiting_[place] = waiting_.back();
    places_[waiting_[place].key] = ~static_cast<int32_t>(place);
  }
  waiting_.pop_back();
}

void DynamicTable::RemoveRow(size_t row) {
  if (row + 1 < keys_.size()) places_[keys_.back()] = static_cast<int32_t>(row);
  RemoveByLast(&keys_, row, 1);
  RemoveByLast(&last_steps_, row, 1);
  RemoveByLast(&weights_, row, cols_);
  for (auto& slot : slots_) RemoveByLast(&slot, row, cols_);
}

void DynamicTable::Expire(int64_t step) {
  const int64_t life = spec_.growth.expire_after;
  if (life == 0 || (step + 1) % std::max<int64_t>(1, life / kLooksPerLife) != 0) return;
  // The loop runs backwards: the entry that takes the place of a removed one has already been
  // checked.
  for (size_t row = keys_.size(); row-- > 0;) {
    if (step - last_steps_[row] < life) continue;
    places_.erase(keys_[row]);
    RemoveRow(row);
  }
  for (size_t place = waiting_.size(); place-- > 0;) {
    if (step - waiting_[place].last_step < life) continue;
    places_.erase(waiting_[place].key);
    RemoveWaiting(place);
  }
}

void DynamicTable::Apply(std::span<const int64_t> keys, std::span<const float> gradient,
                         int64_t step) {
  ++changes_;
  touched_.clear();
  admitted_.clear();
  for (size_t i = 0; i < keys.size(); ++i) {
    const int32_t row = Admit(keys[i], step);
    if (row < 0) {
      // Once a key has no row, the gradients of keys that have one are gathered in admitted_.
      if (touched_.size() == i) {
        const auto before = gradient.first(i * gradient_cols_);
        admitted_.assign(before.begin(), before.end());
      }
      continue;
    }
    const bool all = touched_.size() == i;
    touched_.push_back(row);
    if (all) continue;
    const auto own = gradient.subspan(i * gradient_cols_, gradient_cols_);
    admitted_.insert(admitted_.end(), own.begin(), own.end());
  }
  const bool all = touched_.size() == keys.size();
  const optim::Optimizer& optimizer = *spec_.optimizer;
  if (!keys_.empty() && (!touched_.empty() || optimizer.moves_untouched_rows())) {
    std::vector<float*> slots;
    for (auto& slot : slots_) slots.push_back(slot.data());
    optim::StepTable(optimizer, weights_, spec_.cols, slots, touched_,
                     all ? gradient : std::span<const float>(admitted_), step);
  }
  Expire(step);
}

DynamicTableEntries DynamicTable::Entries(int64_t first, int64_t count) const {
  DynamicTableEntries entries;
  const int64_t end = first + std::min(count, size() - first);
  for (int64_t i = first; i < end; ++i) {
    if (i >= rows()) {
      const WaitingKey& waiting = waiting_[static_cast<size_t>(i - rows())];
      entries.keys.push_back(waiting.key);
      entries.counts.push_back(waiting.count);
      entries.last_steps.push_back(waiting.last_step);
      continue;
    }
    const auto row = static_cast<size_t>(i);
    entries.keys.push_back(keys_[row]);
    entries.counts.push_back(0);
    entries.last_steps.push_back(last_steps_[row]);
    const auto append = [&](const std::vector<float>& values) {
      const auto own = values.begin() + static_cast<ptrdiff_t>(row * cols_);
      entries.values.insert(entries.values.end(), own, own + static_cast<ptrdiff_t>(cols_));
    };
    append(weights_);
    for (const auto& slot : slots_) append(slot);
  }
  return entries;
}

absl::Status DynamicTable::Add(const DynamicTableEntries& entries) {
  ++changes_;
  const size_t n = entries.keys.size();
  const auto rows =
      static_cast<size_t>(std::count(entries.counts.begin(), entries.counts.end(), 0));
  const size_t floats = cols_ * (1 + slots_.size());
  if (entries.counts.size() != n || entries.last_steps.size() != n ||
      entries.values.size() != rows * floats) {
    return absl::InvalidArgumentError(
        StrCat("table ", spec_.name, ": ", n, " keys with ", entries.counts.size(), " counts, ",
               entries.last_steps.size(), " steps and ", entries.values.size(), " floats"));
  }
  const float* values = entries.values.data();
  for (size_t i = 0; i < n; ++i) {
    const int64_t key = entries.keys[i];
    const auto [found, is_new] = places_.try_emplace(key, -1);
    if (!is_new) {
      return absl::InvalidArgumentError(
          StrCat("table ", spec_.name, ": the key ", key, " appears twice"));
    }
    if (entries.counts[i] != 0) {
      found->second = ~static_cast<int32_t>(waiting_.size());
      waiting_.push_back({key, entries.counts[i], entries.last_steps[i]});
      continue;
    }
    found->second = static_cast<int32_t>(keys_.size());
    keys_.push_back(key);
    last_steps_.push_back(entries.last_steps[i]);
    ReserveMore(cols_, &weights_);
    weights_.insert(weights_.end(), values, values + cols_);
    values += cols_;
    for (auto& slot : slots_) {
      ReserveMore(cols_, &slot);
      slot.insert(slot.end(), values, values + cols_);
      values += cols_;
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::tables
