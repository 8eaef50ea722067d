#include "muster/tables/dynamic_table_image.h"

#include <algorithm>
#include <numeric>

#include "muster/tables/key_order.h"

namespace muster::tables {
namespace {

constexpr int64_t kEntriesAtOnce = 4096;

std::vector<size_t> GetOrder(const std::vector<int64_t>& keys) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return IsKeyBefore(keys[a], keys[b]); });
  return order;
}

// Puts rows of `cols` values in `order`.
template <class T>
void Arrange(const std::vector<size_t>& order, size_t cols, std::vector<T>* values) {
  std::vector<T> arranged;
  arranged.reserve(values->size());
  for (const size_t row : order) {
    const auto from = values->begin() + static_cast<ptrdiff_t>(row * cols);
    arranged.insert(arranged.end(), from, from + static_cast<ptrdiff_t>(cols));
  }
  values->swap(arranged);
}

}  // namespace

void DynamicTableImage::Clear(const DynamicTableSpec& spec) {
  *this = DynamicTableImage();
  slots.resize(spec.slots());
}

void DynamicTableImage::Append(const DynamicTableEntries& entries, const DynamicTableSpec& spec) {
  const auto cols = static_cast<ptrdiff_t>(spec.cols);
  auto values = entries.values.begin();
  for (size_t i = 0; i < entries.keys.size(); ++i) {
    if (entries.counts[i] != 0) {
      waiting_keys.push_back(entries.keys[i]);
      waiting_counts.push_back(entries.counts[i]);
      waiting_last_steps.push_back(entries.last_steps[i]);
      continue;
    }
    keys.push_back(entries.keys[i]);
    last_steps.push_back(entries.last_steps[i]);
    weights.insert(weights.end(), values, values + cols);
    values += cols;
    for (auto& slot : slots) {
      slot.insert(slot.end(), values, values + cols);
      values += cols;
    }
  }
}

void DynamicTableImage::Sort(const DynamicTableSpec& spec) {
  const auto cols = static_cast<size_t>(spec.cols);
  const std::vector<size_t> order = GetOrder(keys);
  Arrange(order, 1, &keys);
  Arrange(order, 1, &last_steps);
  Arrange(order, cols, &weights);
  for (auto& slot : slots) Arrange(order, cols, &slot);
  const std::vector<size_t> waiting = GetOrder(waiting_keys);
  Arrange(waiting, 1, &waiting_keys);
  Arrange(waiting, 1, &waiting_counts);
  Arrange(waiting, 1, &waiting_last_steps);
}

int64_t DynamicTableImage::GetKey(int64_t i) const {
  const auto at = static_cast<size_t>(i);
  return at < keys.size() ? keys[at] : waiting_keys[at - keys.size()];
}

void DynamicTableImage::CopyTo(int64_t i, const DynamicTableSpec& spec,
                               DynamicTableEntries* entries) const {
  const auto at = static_cast<size_t>(i);
  entries->keys.push_back(GetKey(i));
  if (at >= keys.size()) {
    entries->counts.push_back(waiting_counts[at - keys.size()]);
    entries->last_steps.push_back(waiting_last_steps[at - keys.size()]);
    return;
  }
  entries->counts.push_back(0);
  entries->last_steps.push_back(last_steps[at]);
  const auto cols = static_cast<ptrdiff_t>(spec.cols);
  const auto append = [&](const std::vector<float>& values) {
    const auto own = values.begin() + static_cast<ptrdiff_t>(at) * cols;
    entries->values.insert(entries->values.end(), own, own + cols);
  };
  append(weights);
  for (const auto& slot : slots) append(slot);
}

void CopyImage(const DynamicTable& table, const DynamicTableSpec& spec, DynamicTableImage* image) {
  image->Clear(spec);
  for (int64_t first = 0; first < table.size(); first += kEntriesAtOnce) {
    image->Append(table.Entries(first, kEntriesAtOnce), spec);
  }
  image->Sort(spec);
}

absl::Status UseImage(const DynamicTableImage& image, const DynamicTableSpec& spec,
                      DynamicTable* table) {
  table->Clear();
  for (int64_t first = 0; first < image.size(); first += kEntriesAtOnce) {
    DynamicTableEntries entries;
    for (int64_t i = first; i < std::min(image.size(), first + kEntriesAtOnce); ++i) {
      image.CopyTo(i, spec, &entries);
    }
    MUSTER_RETURN_IF_ERROR(table->Add(entries));
  }
  return absl::OkStatus();
}

}  // namespace muster::tables
