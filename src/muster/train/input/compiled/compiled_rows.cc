#include "muster/train/input/compiled/compiled_rows.h"

#include <cstring>

#include "absl/strings/cord.h"

#include "muster/base/strings.h"

namespace muster::train {
namespace {

using features::FeatureBatch;
using features::IdList;

constexpr char kDamage[] = "muster/compiled_damage";

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

class CompiledTransform final : public features::FeatureTransform {
 public:
  explicit CompiledTransform(const CompiledLayout& layout)
      : layout_(layout),
        fixed_bytes_(layout.fixed_bytes()),
        ids_(FindParts(layout, false)),
        lists_(FindParts(layout, true)) {
    size_t end = fixed_bytes_;
    for (const CompiledPart& part : ids_) end -= part.bytes();
    for (const CompiledPart& part : ids_) {
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
    for (const CompiledPart& part : ids_) columns.push_back(batch->id_lists[part.list].ids.data());
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
      const CompiledPart& part = ids_[i];
      const uint32_t id = reader.TakeInnerId(part.width, part.mask);
      fits &= id <= part.most;
      columns[i][row] = static_cast<int32_t>(id - 1);
    }
    for (size_t i = plain_ids_; i < ids_.size(); ++i) {
      const CompiledPart& part = ids_[i];
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
    for (const CompiledPart& part : lists_) {
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
  const std::vector<CompiledPart> ids_;    // of columns with one id per row
  const std::vector<CompiledPart> lists_;  // of columns with lists
  // The first ids_ that have neither weights nor keys, and after which the row has 3 bytes more.
  size_t plain_ids_ = 0;
};

}  // namespace

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
