// Checks what can be wrong with the columns of a FeatureSpec.
#include <map>

#include "absl/container/flat_hash_set.h"

#include "muster/features/column_check.h"
#include "muster/features/column_type.h"
#include "muster/features/validate.h"

namespace muster::features {
namespace {

using formats::ValueType;

// Checks that columns with a shared table agree on its shape, and that its name can be a
// variable's.
absl::Status CheckShared(const FeatureSpec& spec) {
  std::map<std::string, const ColumnSpec*> tables;
  for (const ColumnSpec& column : spec.columns) {
    if (column.shared.empty()) continue;
    const std::string context = StrCat("column '", column.name, "': shared '", column.shared, "'");
    if (column.shared.find('/') != std::string::npos || column.shared == "global_step") {
      return Invalid(context, " cannot be the name of a table; give it a plain word");
    }
    const auto [entry, is_new] = tables.emplace(column.shared, &column);
    if (is_new) continue;
    const ColumnSpec& other = *entry->second;
    const int64_t ids = spec.NumIds(*spec.Find(column.input));
    const int64_t other_ids = spec.NumIds(*spec.Find(other.input));
    if (ids != other_ids || column.dimension != other.dimension ||
        column.max_norm != other.max_norm) {
      return Invalid(context, ": its table is ", ids, " x ", column.dimension, ", max_norm ",
                     column.max_norm, "; that of '", other.name, "' is ", other_ids, " x ",
                     other.dimension, ", max_norm ", other.max_norm);
    }
    const GrowthSpec* const growth = spec.GetGrowth(*spec.Find(column.input));
    const GrowthSpec* const other_growth = spec.GetGrowth(*spec.Find(other.input));
    if ((growth == nullptr) != (other_growth == nullptr) ||
        (growth != nullptr && *growth != *other_growth)) {
      return Invalid(context, ": '", column.input, "' and '", other.input,
                     "' must both be keys columns with the same admit_after, expire_after and "
                     "capacity, or neither one");
    }
  }
  return absl::OkStatus();
}

// Checks that columns that read one field with a fixed length agree on it.
absl::Status CheckShapes(const FeatureSpec& spec) {
  std::map<std::string, const ColumnSpec*> first;
  for (const ColumnSpec& column : spec.columns) {
    if (!GetColumnType(column.kind).has_fixed_length()) continue;
    const ColumnSpec& other = *first.emplace(column.input, &column).first->second;
    if (other.shape == column.shape) continue;
    return Invalid("column '", column.name, "': shape is ", column.shape, ", and '", other.name,
                   "', which reads '", column.input, "' too, has ", other.shape);
  }
  return absl::OkStatus();
}

// Checks that all columns over an input impute the same number.
absl::Status CheckImputes(const FeatureSpec& spec) {
  std::map<std::string, const ColumnSpec*> first;
  for (const ColumnSpec& column : spec.columns) {
    if (column.impute == Impute::kNone) continue;
    const ColumnSpec& other = *first.emplace(column.input, &column).first->second;
    if (other.impute == column.impute && other.imputed == column.imputed) continue;
    return Invalid("column '", column.name, "': impute differs from that of '", other.name,
                   "', which reads '", column.input, "' too; give both the same");
  }
  return absl::OkStatus();
}

}  // namespace

// Checks the words of a vocabulary over a field of `type`.
absl::Status CheckWords(ValueType type, const std::vector<std::string>& words) {
  absl::flat_hash_set<std::string> texts;
  absl::flat_hash_set<int64_t> numbers;
  for (const std::string& word : words) {
    bool is_new = false;
    if (type == ValueType::kInt) {
      MUSTER_ASSIGN_OR_RETURN(const int64_t value, ParseIntWord(word));
      is_new = numbers.insert(value).second;
    } else {
      is_new = texts.insert(word).second;
    }
    if (!is_new) return Invalid("the word '", word, "' is there twice");
  }
  return absl::OkStatus();
}

absl::Status CheckColumns(const FeatureSpec& spec) {
  absl::flat_hash_set<std::string> names;
  for (const ColumnSpec& column : spec.columns) {
    if (column.name.empty()) return Invalid("a column without a name");
    const std::string context = StrCat("column '", column.name, "'");
    if (!names.insert(column.name).second) return Invalid(context, ": the name is there twice");
    MUSTER_RETURN_IF_ERROR(
        Annotate(GetColumnType(column.kind).Check(ColumnCheck(spec, column)), context));
  }
  MUSTER_RETURN_IF_ERROR(CheckShapes(spec));
  MUSTER_RETURN_IF_ERROR(CheckImputes(spec));
  return CheckShared(spec);
}

}  // namespace muster::features
