#include "muster/train/input/compiled/row_compiler.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace muster::train {
namespace {

using features::FeatureBatch;
using features::IdList;

// Writes an id, of which the first bytes count, as the number above it, so that -1 is 0.
void PutId(int32_t id, char* to) {
  const auto number = static_cast<uint32_t>(id) + 1;
  std::memcpy(to, &number, sizeof number);
}

// Ids of columns that lie side by side, in as few words as may be. One that a weight or a key
// follows is the last of its word.
std::vector<CompiledWord> FindWords(const std::vector<CompiledPart>& ids) {
  std::vector<CompiledWord> words;
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool fits =
        i > 0 && ids[i - 1].is_plain() && words.back().bytes + ids[i].width <= sizeof(uint64_t);
    if (!fits) words.push_back({.begin = i});
    words.back().end = i + 1;
    words.back().bytes += ids[i].width;
  }
  return words;
}

}  // namespace

bool HasLayout(const FeatureBatch& batch, const CompiledLayout& layout) {
  const auto rows = static_cast<size_t>(batch.rows);
  if (batch.labels.size() != rows * static_cast<size_t>(layout.label_width) ||
      batch.weights.size() != (layout.has_weight ? rows : 0) ||
      batch.dense.size() != layout.dense.size() ||
      batch.id_lists.size() != layout.id_lists.size() || !batch.raw.empty()) {
    return false;
  }
  for (size_t i = 0; i < layout.dense.size(); ++i) {
    if (batch.dense[i].width != layout.dense[i]) return false;
  }
  for (size_t i = 0; i < layout.id_lists.size(); ++i) {
    const CompiledLayout::Ids& ids = layout.id_lists[i];
    const IdList& list = batch.id_lists[i];
    const size_t count = list.ids.size();
    if (list.one_per_row() == ids.is_list || list.weights.size() != (ids.has_weights ? count : 0) ||
        list.keys.size() != (ids.has_keys ? count : 0)) {
      return false;
    }
    // The sign of id + 1 or of ids - 1 - id is set for an id that is not in [-1, ids).
    const auto last = static_cast<uint32_t>(ids.ids - 1);
    uint32_t signs = 0;
    for (const int32_t id : list.ids) {
      const auto bits = static_cast<uint32_t>(id);
      signs |= (bits + 1) | (last - bits);
    }
    if (signs >> 31 != 0) return false;
  }
  return true;
}

RowCompiler::RowCompiler(const CompiledLayout& layout)
    : layout_(layout),
      fixed_bytes_(layout.fixed_bytes()),
      ids_(FindParts(layout, false)),
      lists_(FindParts(layout, true)),
      words_(FindWords(ids_)) {}

bool RowCompiler::Take(const FeatureBatch& batch) {
  if (!HasLayout(batch, layout_)) return false;
  batch_ = &batch;
  return true;
}

// Values are written column by column, ids of several columns at once: the bytes behind a value
// belong to what is written after it, or are slack.
void RowCompiler::Compile(int begin, int end) {
  const FeatureBatch& batch = *batch_;
  const auto first = static_cast<size_t>(begin), rows = static_cast<size_t>(end - begin);
  begin_ = begin;
  fixed_.resize(std::max(fixed_.size(), rows * stride()));
  char* to = fixed_.data();
  const auto put = [&](const auto* values, size_t width) {
    const auto put_each = [&](size_t count) {
      for (size_t row = 0; row < rows; ++row) {
        std::memcpy(to + row * stride(), values + (first + row) * width, count * sizeof *values);
      }
    };
    width == 1 ? put_each(1) : put_each(width);  // one value is no call of memcpy
    to += width * sizeof *values;
  };
  if (layout_.label_width > 0) {
    put(batch.labels.data(), static_cast<size_t>(layout_.label_width));
  }
  if (layout_.has_weight) put(batch.weights.data(), 1);
  for (const features::DenseColumn& column : batch.dense) {
    put(column.values.data(), static_cast<size_t>(column.width));
  }
  for (const CompiledWord& word : words_) {
    PutWords(word, first, rows, to);
    to += word.bytes;
    const CompiledPart& last = ids_[word.end - 1];
    if (last.has_weights) put(batch.id_lists[last.list].weights.data(), 1);
    if (last.has_keys) put(batch.id_lists[last.list].keys.data(), 1);
  }
}

void RowCompiler::PutWords(const CompiledWord& word, size_t begin, size_t rows, char* to) const {
  using Ids = uint32_t __attribute__((vector_size(4 * sizeof(uint32_t))));
  using Words = uint64_t __attribute__((vector_size(4 * sizeof(uint64_t))));
  constexpr size_t kAtOnce = 4;
  const size_t whole = rows - rows % kAtOnce, columns = word.end - word.begin;
  const size_t step = stride();
  const int32_t* ids[sizeof(uint64_t)];
  int shifts[sizeof(uint64_t)];
  int shift = 0;
  for (size_t i = 0; i < columns; ++i) {
    const CompiledPart& part = ids_[word.begin + i];
    ids[i] = batch_->id_lists[part.list].ids.data() + begin;
    shifts[i] = std::exchange(shift, shift + 8 * static_cast<int>(part.width));
  }
  for (size_t row = 0; row < whole; row += kAtOnce) {
    Words words = {};
    for (size_t i = 0; i < columns; ++i) {
      Ids some;
      std::memcpy(&some, ids[i] + row, sizeof some);
      words |= __builtin_convertvector(some + 1, Words) << shifts[i];
    }
    for (size_t k = 0; k < kAtOnce; ++k) {
      const uint64_t each = words[k];
      std::memcpy(to + (row + k) * step, &each, sizeof each);
    }
  }
  for (size_t row = whole; row < rows; ++row) {
    uint64_t each = 0;
    for (size_t i = 0; i < columns; ++i) {
      each |= uint64_t{static_cast<uint32_t>(ids[i][row]) + 1} << shifts[i];
    }
    std::memcpy(to + row * step, &each, sizeof each);
  }
}

size_t RowCompiler::GetSize(int row) const {
  size_t bytes = fixed_bytes_;
  for (const CompiledPart& part : lists_) {
    const IdList& list = batch_->id_lists[part.list];
    bytes += sizeof(uint32_t) + part.bytes() * (list.end(row) - list.begin(row));
  }
  return bytes;
}

void RowCompiler::Write(int row, char* to) const {
  const auto put = [&to](const auto* values, size_t count) {
    if (count == 0) return;  // `values` may be null then
    std::memcpy(to, values, count * sizeof *values);
    to += count * sizeof *values;
  };
  put(GetFixed(row).data(), fixed_bytes_);
  for (const CompiledPart& part : lists_) {
    const IdList& list = batch_->id_lists[part.list];
    const size_t begin = list.begin(row);
    const auto count = static_cast<uint32_t>(list.end(row) - begin);
    put(&count, 1);
    for (size_t i = begin; i < begin + count; ++i, to += part.width) PutId(list.ids[i], to);
    if (part.has_weights) put(list.weights.data() + begin, count);
    if (part.has_keys) put(list.keys.data() + begin, count);
  }
}

}  // namespace muster::train
