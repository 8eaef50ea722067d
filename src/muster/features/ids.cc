#include "muster/features/ids.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/escaping.h"

#include "muster/features/column_type.h"

namespace muster::features {
namespace {

// Looks up the ids of a column over one field. Negative ids mean "none", and become -1 here.
class LookupTransform final : public IdTransform {
 public:
  explicit LookupTransform(std::unique_ptr<IdLookup> lookup) : lookup_(std::move(lookup)) {}

  void MarkFingerprints(std::vector<bool>* fields) const override {
    if (lookup_->needs_fingerprints()) (*fields)[lookup_->field()] = true;
  }

  absl::Status Apply(const formats::Columns& rows, Scratch* scratch, IdList* ids,
                     int* bad_row) const override {
    MUSTER_RETURN_IF_ERROR(lookup_->CheckRows(rows, bad_row));
    const formats::Column& column = rows.column(lookup_->field());
    ids->weights.clear();
    ids->keys.clear();
    ids->offsets = column.offsets;  // empty for a scalar field
    return Values(rows, *scratch, NumValues(column, lookup_->type()), ids, bad_row);
  }

 private:
  absl::Status Values(const formats::Columns& rows, const Scratch& scratch, size_t total,
                      IdList* ids, int* bad_row) const {
    ids->ids.resize(total);
    std::array<int64_t, kBlock> block;
    for (size_t first = 0; first < total; first += kBlock) {
      const int count = static_cast<int>(std::min<size_t>(kBlock, total - first));
      MUSTER_RETURN_IF_ERROR(Block(rows, scratch, first, count, block.data(), bad_row));
      int32_t* const out = ids->ids.data() + first;
      for (int i = 0; i < count; ++i) {
        out[i] = static_cast<int32_t>(std::max<int64_t>(block[i], -1));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Block(const formats::Columns& rows, const Scratch& scratch, size_t first, int count,
                     int64_t* block, int* bad_row) const {
    size_t bad_value = 0;
    absl::Status status = lookup_->Lookup(rows, scratch, first, count, block, &bad_value);
    if (status.ok()) return status;
    *bad_row = FindRow(rows.column(lookup_->field()), bad_value);
    return status;
  }

  std::unique_ptr<IdLookup> lookup_;
};

}  // namespace

std::unique_ptr<IdTransform> ColumnType::MakeIds(const FeatureSpec& spec,
                                                 const ColumnSpec& column) const {
  return std::make_unique<LookupTransform>(MakeLookup(spec.schema, column));
}

std::unique_ptr<IdLookup> MakeLookup(const formats::Schema& schema, const ColumnSpec& column) {
  return GetColumnType(column.kind).MakeLookup(schema, column);
}

std::unique_ptr<IdTransform> MakeIdTransform(const FeatureSpec& spec, const ColumnSpec& column) {
  return GetColumnType(column.kind).MakeIds(spec, column);
}

absl::Status CheckLengths(const formats::Column& column, int shape, int* bad_row) {
  const std::vector<uint32_t>& offsets = column.offsets;
  for (size_t row = 0; row + 1 < offsets.size(); ++row) {
    const uint32_t length = offsets[row + 1] - offsets[row];
    if (std::cmp_equal(length, shape)) continue;
    *bad_row = static_cast<int>(row);
    return absl::InvalidArgumentError(
        StrCat("it has ", length, " values, not the ", shape, " that 'shape' says; mend the row"));
  }
  return absl::OkStatus();
}

int FindRow(const formats::Column& column, size_t value) {
  if (column.offsets.empty()) return static_cast<int>(value);
  const auto after = std::upper_bound(column.offsets.begin(), column.offsets.end(), value);
  return static_cast<int>(after - column.offsets.begin()) - 1;
}

size_t NumValues(const formats::Column& column, formats::ValueType type) {
  switch (type) {
    case formats::ValueType::kInt:
      return column.ints.size();
    case formats::ValueType::kFloat:
      return column.floats.size();
    case formats::ValueType::kString:
      return column.strings.size();
  }
  return 0;
}

std::string Shown(std::string_view value) {
  constexpr size_t kMaxShown = 60;
  const bool cut = value.size() > kMaxShown;
  return StrCat("'", absl::CHexEscape(ToAbsl(value.substr(0, kMaxShown))), cut ? "...'" : "'");
}

}  // namespace muster::features
