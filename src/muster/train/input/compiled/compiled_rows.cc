#include "muster/train/input/compiled/compiled_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/cord.h"

#include "muster/base/strings.h"

namespace muster::train {
namespace {

using features::FeatureBatch;
using features::IdList;

constexpr char kDamage[] = "muster/compiled_damage";

// Writes an id, of which the first bytes count, as the number above it, so that -1 is 0.
void PutId(int32_t id, char* to) {
  const auto number = static_cast<uint32_t>(id) + 1;
  std::memcpy(to, &number, sizeof number);
}

// The low bits that `bytes` bytes have.
uint32_t MaskOf(int bytes) { return bytes == 4 ? ~uint32_t{0} : (uint32_t{1} << 8 * bytes) - 1; }

// Takes what a row has from the front of its bytes. The caller knows that they are there.
class RowReader {
 public:
  explicit RowReader(std::string_view bytes) : next_(bytes.data()), end_(next_ + bytes.size()) {}

  size_t left() const { return static_cast<size_t>(end_ - next_); }
  template <typename Number>
  void Take(size_t count, Number* values) {
    if (count == 0) return;  // `values` may be null then
    std::memcpy(values, next_, count * sizeof(Number));
    next_ += count * sizeof(Number);
  }
  // An id whose first 4 bytes lie in the row, though the last ones may not be its own.
  uint32_t TakeInnerId(size_t width, uint32_t mask) {
    uint32_t id;
    std::memcpy(&id, next_, sizeof id);
    next_ += width;
    return id & mask;
  }
  uint32_t TakeId(size_t width, uint32_t mask) {
    if (left() >= sizeof(uint32_t)) [[likely]]
      return TakeInnerId(width, mask);
    uint32_t id = 0;
    std::memcpy(&id, next_, width);
    next_ += width;
    return id;
  }

 private:
  const char* next_;
  const char* end_;
};

using Part = CompiledPart;
using Word = CompiledWord;

std::vector<Part> FindParts(const CompiledLayout& layout, bool lists) {
  std::vector<Part> parts;
  for (size_t i = 0; i < layout.id_lists.size(); ++i) {
    const CompiledLayout::Ids& ids = layout.id_lists[i];
    if (ids.is_list != lists) continue;
    parts.push_back({.list = i,
                     .width = static_cast<size_t>(ids.bytes()),
                     .mask = MaskOf(ids.bytes()),
                     .most = static_cast<uint32_t>(ids.ids),
                     .has_weights = ids.has_weights,
                     .has_keys = ids.has_keys});
  }
  return parts;
}

// Ids of columns that lie side by side, in as few words as may be. One that a weight or a key
// follows is the last of its word.
std::vector<CompiledWord> FindWords(const std::vector<Part>& ids) {
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

class CompiledTransform final : public features::FeatureTransform {
 public:
  explicit CompiledTransform(const CompiledLayout& layout)
      : layout_(layout),
        fixed_bytes_(layout.fixed_bytes()),
        ids_(FindParts(layout, false)),
        lists_(FindParts(layout, true)) {
    size_t end = fixed_bytes_;
    for (const Part& part : ids_) end -= part.bytes();
    for (const Part& part : ids_) {
      if (!part.is_plain() || end + sizeof(uint32_t) > fixed_bytes_) break;
      end += part.width;
      ++plain_ids_;
    }
  }

  absl::Status Apply(const formats::Columns& rows, bool with_labels, FeatureBatch* batch,
                     int* bad_row) const override {
    if (bad_row != nullptr) *bad_row = -1;
    if (with_labels != (layout_.label_width > 0)) {
      return absl::InternalError("compiled rows were made for another use of labels");
    }
    Resize(rows.rows(), batch);
    std::vector<int32_t*> columns;  // of ids_
    for (const Part& part : ids_) columns.push_back(batch->id_lists[part.list].ids.data());
    const std::vector<std::string_view>& views = rows.column(0).strings;
    for (size_t row = 0; row < views.size(); ++row) {
      if (!TakeRow(views[row], row, columns, batch)) {
        return CompiledDamage("bytes that are not a compiled row");
      }
    }
    return absl::OkStatus();
  }

 private:
  void Resize(int rows, FeatureBatch* batch) const {
    const auto count = static_cast<size_t>(rows);
    batch->rows = rows;
    batch->labels.resize(count * static_cast<size_t>(layout_.label_width));
    batch->weights.resize(layout_.has_weight ? count : 0);
    batch->dense.resize(layout_.dense.size());
    for (size_t i = 0; i < layout_.dense.size(); ++i) {
      batch->dense[i].width = layout_.dense[i];
      batch->dense[i].values.resize(count * static_cast<size_t>(layout_.dense[i]));
    }
    batch->id_lists.resize(layout_.id_lists.size());
    for (size_t i = 0; i < layout_.id_lists.size(); ++i) {
      const CompiledLayout::Ids& ids = layout_.id_lists[i];
      IdList& list = batch->id_lists[i];
      const size_t size = ids.is_list ? 0 : count;
      list.ids.resize(size);
      list.weights.resize(ids.has_weights ? size : 0);
      list.keys.resize(ids.has_keys ? size : 0);
      list.offsets.assign(ids.is_list ? 1 : 0, 0);
    }
  }

  bool TakeRow(std::string_view bytes, size_t row, const std::vector<int32_t*>& columns,
               FeatureBatch* batch) const {
    if (bytes.size() < fixed_bytes_) return false;
    RowReader reader(bytes);
    const auto labels = static_cast<size_t>(layout_.label_width);
    reader.Take(labels, batch->labels.data() + row * labels);
    if (layout_.has_weight) reader.Take(1, &batch->weights[row]);
    for (features::DenseColumn& column : batch->dense) {
      const auto width = static_cast<size_t>(column.width);
      float* const values = column.values.data() + row * width;
      width == 1 ? reader.Take(1, values) : reader.Take(width, values);
    }
    bool fits = true;
    for (size_t i = 0; i < plain_ids_; ++i) {
      const Part& part = ids_[i];
      const uint32_t id = reader.TakeInnerId(part.width, part.mask);
      fits &= id <= part.most;
      columns[i][row] = static_cast<int32_t>(id - 1);
    }
    for (size_t i = plain_ids_; i < ids_.size(); ++i) {
      const Part& part = ids_[i];
      const uint32_t id = reader.TakeId(part.width, part.mask);
      fits &= id <= part.most;
      columns[i][row] = static_cast<int32_t>(id - 1);
      if (part.has_weights) reader.Take(1, &batch->id_lists[part.list].weights[row]);
      if (part.has_keys) reader.Take(1, &batch->id_lists[part.list].keys[row]);
    }
    if (!lists_.empty()) fits &= TakeLists(reader, batch);
    return fits && reader.left() == 0;
  }

  bool TakeLists(RowReader& reader, FeatureBatch* batch) const {
    bool fits = true;
    for (const Part& part : lists_) {
      uint32_t count = 0;
      if (reader.left() < sizeof count) return false;
      reader.Take(1, &count);
      if (count > reader.left() / part.bytes()) return false;
      IdList& list = batch->id_lists[part.list];
      const size_t before = list.ids.size();
      list.ids.resize(before + count);
      for (size_t k = before; k < before + count; ++k) {
        const uint32_t id = reader.TakeId(part.width, part.mask);
        fits &= id <= part.most;
        list.ids[k] = static_cast<int32_t>(id - 1);
      }
      if (part.has_weights) {
        list.weights.resize(before + count);
        reader.Take(count, list.weights.data() + before);
      }
      if (part.has_keys) {
        list.keys.resize(before + count);
        reader.Take(count, list.keys.data() + before);
      }
      list.offsets.push_back(static_cast<uint32_t>(list.ids.size()));
    }
    return fits;
  }

  const CompiledLayout layout_;
  const size_t fixed_bytes_;
  const std::vector<Part> ids_;    // of columns with one id per row
  const std::vector<Part> lists_;  // of columns with lists
  // The first ids_ that have neither weights nor keys, and after which the row has 3 bytes more.
  size_t plain_ids_ = 0;
};

}  // namespace

int CompiledLayout::Ids::bytes() const {
  int bytes = 1;
  while (bytes < 4 && ids >= int64_t{1} << 8 * bytes) ++bytes;
  return bytes;
}

size_t CompiledLayout::dense_width() const {
  return std::accumulate(dense.begin(), dense.end(), size_t{0},
                         [](size_t sum, int width) { return sum + static_cast<size_t>(width); });
}

size_t CompiledLayout::fixed_bytes() const {
  size_t floats = static_cast<size_t>(label_width) + (has_weight ? 1 : 0) + dense_width();
  size_t bytes = 0;
  for (const Ids& list : id_lists) {
    if (list.is_list) continue;
    bytes += static_cast<size_t>(list.bytes()) + (list.has_keys ? sizeof(int64_t) : 0);
    floats += list.has_weights ? 1 : 0;
  }
  return bytes + floats * sizeof(float);
}

bool CompiledLayout::has_lists() const {
  for (const Ids& list : id_lists) {
    if (list.is_list) return true;
  }
  return false;
}

CompiledLayout MakeLayout(const features::FeatureSpec& spec,
                          const features::FeatureRequest& request, bool with_labels,
                          const FeatureBatch& batch) {
  CompiledLayout layout = {.label_width = with_labels ? spec.label.width : 0,
                           .has_weight = with_labels && !spec.weight.empty()};
  for (const features::DenseColumn& column : batch.dense) layout.dense.push_back(column.width);
  for (size_t i = 0; i < request.categorical.size(); ++i) {
    const features::ColumnSpec& column = *spec.Find(request.categorical[i]);
    const bool has_keys = spec.GetGrowth(column) != nullptr;
    layout.id_lists.push_back({.is_list = !batch.id_lists[i].one_per_row(),
                               .has_weights = column.kind == features::ColumnKind::kWeighted,
                               .has_keys = has_keys,
                               .ids = has_keys ? 1 : spec.NumIds(column)});
  }
  return layout;
}

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

// Values are written column by column, ids of several columns at once: the bytes behind a value
// belong to what is written after it, or are slack.
bool RowCompiler::Take(const FeatureBatch& batch) {
  if (!HasLayout(batch, layout_)) return false;
  batch_ = &batch;
  const auto rows = static_cast<size_t>(batch.rows);
  fixed_.resize(std::max(fixed_.size(), rows * stride()));
  char* to = fixed_.data();
  const auto put = [&](const auto* values, size_t width) {
    const size_t bytes = width * sizeof *values;
    for (size_t row = 0; row < rows; ++row) {
      std::memcpy(to + row * stride(), values + row * width, bytes);
    }
    to += bytes;
  };
  if (layout_.label_width > 0) {
    put(batch.labels.data(), static_cast<size_t>(layout_.label_width));
  }
  if (layout_.has_weight) put(batch.weights.data(), 1);
  for (const features::DenseColumn& column : batch.dense) {
    put(column.values.data(), static_cast<size_t>(column.width));
  }
  for (const Word& word : words_) {
    PutWords(batch, word, to);
    to += word.bytes;
    const Part& last = ids_[word.end - 1];
    if (last.has_weights) put(batch.id_lists[last.list].weights.data(), 1);
    if (last.has_keys) put(batch.id_lists[last.list].keys.data(), 1);
  }
  return true;
}

void RowCompiler::PutWords(const FeatureBatch& batch, const Word& word, char* to) const {
  using Ids = uint32_t __attribute__((vector_size(4 * sizeof(uint32_t))));
  using Words = uint64_t __attribute__((vector_size(4 * sizeof(uint64_t))));
  constexpr size_t kAtOnce = 4;
  const auto rows = static_cast<size_t>(batch.rows);
  const size_t whole = rows - rows % kAtOnce, columns = word.end - word.begin;
  const size_t step = stride();
  const int32_t* ids[sizeof(uint64_t)];
  int shifts[sizeof(uint64_t)];
  int shift = 0;
  for (size_t i = 0; i < columns; ++i) {
    const Part& part = ids_[word.begin + i];
    ids[i] = batch.id_lists[part.list].ids.data();
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
  for (const Part& part : lists_) {
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
  for (const Part& part : lists_) {
    const IdList& list = batch_->id_lists[part.list];
    const size_t begin = list.begin(row);
    const auto count = static_cast<uint32_t>(list.end(row) - begin);
    put(&count, 1);
    for (size_t i = begin; i < begin + count; ++i, to += part.width) PutId(list.ids[i], to);
    if (part.has_weights) put(list.weights.data() + begin, count);
    if (part.has_keys) put(list.keys.data() + begin, count);
  }
}

absl::Status CompiledDamage(std::string_view message) {
  absl::Status status = absl::DataLossError(ToAbsl(message));
  status.SetPayload(kDamage, absl::Cord());
  return status;
}

bool IsCompiledDamage(const absl::Status& status) { return status.GetPayload(kDamage).has_value(); }

formats::Schema CompiledSchema() {
  formats::Schema schema;
  schema.fields.emplace_back().name = "row";
  return schema;
}

std::unique_ptr<features::FeatureTransform> NewCompiledTransform(const CompiledLayout& layout) {
  return std::make_unique<CompiledTransform>(layout);
}

}  // namespace muster::train
