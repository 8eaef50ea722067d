#include "muster/features/column.h"

#include <charconv>

namespace muster::features {

bool ColumnSpec::is_categorical() const {
  switch (kind) {
    case ColumnKind::kBucketized:
    case ColumnKind::kVocabulary:
    case ColumnKind::kIdentity:
    case ColumnKind::kHash:
    case ColumnKind::kCross:
      return true;
    case ColumnKind::kNumeric:
    case ColumnKind::kIndicator:
    case ColumnKind::kEmbedding:
      return false;
  }
  return false;
}

int64_t ColumnSpec::num_ids() const {
  switch (kind) {
    case ColumnKind::kBucketized:
      return static_cast<int64_t>(boundaries.size()) + 1;
    case ColumnKind::kVocabulary:
      return static_cast<int64_t>(words.size()) + oov_buckets;
    case ColumnKind::kIdentity:
    case ColumnKind::kHash:
    case ColumnKind::kCross:
      return buckets;
    case ColumnKind::kNumeric:
    case ColumnKind::kIndicator:
    case ColumnKind::kEmbedding:
      return 0;
  }
  return 0;
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
