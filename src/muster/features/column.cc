#include "muster/features/column.h"

#include <algorithm>
#include <charconv>

#include "muster/features/column_type.h"

namespace muster::features {

bool ColumnSpec::is_categorical() const { return GetColumnType(kind).is_categorical(); }

int64_t FeatureSpec::NumIds(const ColumnSpec& column) const {
  return GetColumnType(column.kind).NumIds(*this, column);
}

const GrowthSpec* FeatureSpec::GetGrowth(const ColumnSpec& column) const {
  return GetColumnType(column.kind).GetGrowth(*this, column);
}

int FeatureSpec::Width(const ColumnSpec& column) const {
  return GetColumnType(column.kind).Width(*this, column);
}

bool FeatureSpec::HasLists(const ColumnSpec& column) const {
  std::set<std::string> used_columns, used_fields;
  CollectUses(column.name, &used_columns, &used_fields);
  return std::any_of(used_fields.begin(), used_fields.end(), [this](const std::string& name) {
    const int field = schema.Find(name);
    return field >= 0 && schema.fields[field].list;
  });
}

void FeatureSpec::CollectUses(const std::string& name, std::set<std::string>* used_columns,
                              std::set<std::string>* used_fields) const {
  const ColumnSpec* const column = Find(name);
  if (column == nullptr || !used_columns->insert(name).second) return;
  GetColumnType(column->kind).CollectUses(*this, *column, used_columns, used_fields);
}

const ColumnSpec* FeatureSpec::Find(std::string_view name) const {
  for (const ColumnSpec& column : columns) {
    if (column.name == name) return &column;
  }
  return nullptr;
}

absl::StatusOr<int64_t> ParseIntWord(std::string_view word) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error == std::errc() && end == word.data() + word.size()) return value;
  return absl::InvalidArgumentError(
      StrCat("the word '", word, "' of an int vocabulary is not a decimal number of 64 bits"));
}

const formats::Field* FeatureSpec::AnyInput() const {
  for (const formats::Field& field : schema.fields) {
    if (field.name != label.input && field.name != weight && field.name != key) return &field;
  }
  return nullptr;
}

}  // namespace muster::features
