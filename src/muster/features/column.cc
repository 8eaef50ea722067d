#include "muster/features/column.h"

#include <algorithm>
#include <charconv>

namespace muster::features {

bool ColumnSpec::is_categorical() const {
  switch (kind) {
    case ColumnKind::kBucketized:
    case ColumnKind::kVocabulary:
    case ColumnKind::kIdentity:
    case ColumnKind::kHash:
    case ColumnKind::kKeys:
    case ColumnKind::kCross:
    case ColumnKind::kWeighted:
      return true;
    case ColumnKind::kNumeric:
    case ColumnKind::kIndicator:
    case ColumnKind::kEmbedding:
    case ColumnKind::kSequenceNumeric:
      return false;
  }
  return false;
}

int64_t FeatureSpec::NumIds(const ColumnSpec& column) const {
  switch (column.kind) {
    case ColumnKind::kBucketized:
      return (static_cast<int64_t>(column.boundaries.size()) + 1) * column.shape;
    case ColumnKind::kVocabulary:
      return static_cast<int64_t>(column.words.size()) + column.oov_buckets;
    case ColumnKind::kWeighted: {
      const ColumnSpec* const input = Find(column.input);
      return input == nullptr || input->kind == ColumnKind::kWeighted ? 0 : NumIds(*input);
    }
    default:
      return column.buckets;
  }
}

const GrowthSpec* FeatureSpec::GetGrowth(const ColumnSpec& column) const {
  if (column.kind == ColumnKind::kKeys) return &column.growth;
  if (column.kind != ColumnKind::kWeighted) return nullptr;
  const ColumnSpec* const input = Find(column.input);
  return input != nullptr && input->kind == ColumnKind::kKeys ? &input->growth : nullptr;
}

int FeatureSpec::Width(const ColumnSpec& column) const {
  switch (column.kind) {
    case ColumnKind::kIndicator:
      return static_cast<int>(NumIds(*Find(column.input)));
    case ColumnKind::kEmbedding:
      return column.dimension;
    default:
      return column.shape;
  }
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
  switch (column->kind) {
    case ColumnKind::kWeighted:
      used_fields->insert(column->weights);
      [[fallthrough]];
    case ColumnKind::kIndicator:
    case ColumnKind::kEmbedding:
      return CollectUses(column->input, used_columns, used_fields);
    case ColumnKind::kCross:
      for (const std::string& each : column->keys) {
        if (schema.Find(each) >= 0) {
          used_fields->insert(each);
        } else {
          CollectUses(each, used_columns, used_fields);
        }
      }
      return;
    default:
      used_fields->insert(column->input);
  }
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
