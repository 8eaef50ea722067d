// What can be wrong with the columns of a FeatureSpec.
#include <cmath>
#include <limits>
#include <map>

#include "absl/container/flat_hash_set.h"

#include "muster/base/nearest.h"
#include "muster/features/validate.h"

namespace muster::features {
namespace {

using formats::Field;
using formats::ValueType;

constexpr int64_t kMaxIds = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxIndicator = 1 << 20;  // floats a row
constexpr int kMaxDimension = 1 << 16;

// Checks one column, with the schema and the other columns to look names up in.
class ColumnCheck {
 public:
  ColumnCheck(const FeatureSpec& spec, const ColumnSpec& column) : spec_(spec), column_(column) {}

  absl::Status Run() const {
    switch (column_.kind) {
      case ColumnKind::kNumeric:
        return Numeric();
      case ColumnKind::kBucketized:
        return Bucketized();
      case ColumnKind::kVocabulary:
        return Vocabulary();
      case ColumnKind::kIdentity:
        return Identity();
      case ColumnKind::kHash:
        MUSTER_RETURN_IF_ERROR(IntOrString("a hash column").status());
        return Buckets();
      case ColumnKind::kKeys:
        return Keys();
      case ColumnKind::kCross:
        return Cross();
      case ColumnKind::kWeighted:
        return Weighted();
      case ColumnKind::kIndicator:
        return Indicator();
      case ColumnKind::kEmbedding:
        return Embedding();
      case ColumnKind::kSequenceNumeric:
        return SequenceNumeric();
    }
    return Invalid("unknown kind ", static_cast<int>(column_.kind));
  }

 private:
  absl::StatusOr<const Field*> Input() const { return FieldNamed(column_.input); }

  absl::StatusOr<const Field*> FieldNamed(const std::string& name) const {
    const int index = spec_.schema.Find(name);
    if (index >= 0) return &spec_.schema.fields[index];
    std::vector<std::string> known;
    for (const Field& field : spec_.schema.fields) known.push_back(field.name);
    return Invalid("unknown input '", name, "'", DidYouMean(name, known));
  }

  absl::StatusOr<const Field*> Number(std::string_view what) const {
    MUSTER_ASSIGN_OR_RETURN(const Field* field, Input());
    if (field->type != ValueType::kString) return field;
    return Invalid(what, " needs an int or float input; '", field->name, "' is a string");
  }

  // One number a row, or a list of `shape` of them.
  absl::Status Numbers(std::string_view what) const {
    MUSTER_ASSIGN_OR_RETURN(const Field* field, Number(what));
    if (!field->list && column_.shape != 1) {
      return Invalid("shape is ", column_.shape, " and '", field->name,
                     "' has one value a row; make it a list or leave 'shape' out");
    }
    return Shape();
  }

  absl::Status Shape() const {
    if (column_.shape >= 1 && column_.shape <= kMaxDimension) return absl::OkStatus();
    return Invalid("shape is ", column_.shape, "; it must be in [1, ", kMaxDimension, "]");
  }

  absl::StatusOr<const Field*> IntOrString(std::string_view what) const {
    MUSTER_ASSIGN_OR_RETURN(const Field* field, Input());
    if (field->type == ValueType::kFloat) {
      return Invalid(what, " needs an int or string input; '", field->name,
                     "' is a float (bucketize it, or read it as an int or a string)");
    }
    return field;
  }

  absl::Status Buckets() const {
    if (column_.buckets >= 1 && column_.buckets <= kMaxIds) return absl::OkStatus();
    return Invalid("buckets is ", column_.buckets, "; it must be in [1, ", kMaxIds, "]");
  }

  absl::Status Numeric() const {
    MUSTER_RETURN_IF_ERROR(Numbers("a numeric column"));
    return Scale();
  }

  absl::Status SequenceNumeric() const {
    MUSTER_ASSIGN_OR_RETURN(const Field* field, Number("a sequence"));
    if (!field->list) return Invalid("a sequence needs a list; '", field->name, "' is none");
    if (column_.pooling == Pooling::kNone) return Invalid("needs its pooling");
    MUSTER_RETURN_IF_ERROR(Shape());
    return Scale();
  }

  absl::Status Scale() const {
    if (!std::isfinite(static_cast<float>(column_.mean))) {
      return Invalid("mean is ", column_.mean, "; it must be a finite float");
    }
    const float stddev = static_cast<float>(column_.stddev);
    if (!std::isfinite(stddev) || !(stddev > 0)) {
      return Invalid("stddev is ", column_.stddev, "; it must be a finite float above 0");
    }
    return absl::OkStatus();
  }

  absl::Status Bucketized() const {
    MUSTER_RETURN_IF_ERROR(Numbers("a bucketized column"));
    const std::vector<float>& boundaries = column_.boundaries;
    if (boundaries.empty()) return Invalid("boundaries are empty; give at least one");
    for (size_t i = 0; i < boundaries.size(); ++i) {
      if (!std::isfinite(boundaries[i])) return Invalid("boundary ", i, " is not finite");
      if (i > 0 && !(boundaries[i - 1] < boundaries[i])) {
        return Invalid("boundaries must rise as 32-bit floats; boundary ", i, " is ", boundaries[i],
                       " after ", boundaries[i - 1]);
      }
    }
    return NumIds();
  }

  absl::Status NumIds() const {
    const int64_t ids = spec_.NumIds(column_);
    if (ids <= kMaxIds) return absl::OkStatus();
    return Invalid("has ", ids, " ids; at most ", kMaxIds, " are possible");
  }

  absl::Status Vocabulary() const {
    MUSTER_ASSIGN_OR_RETURN(const Field* field, IntOrString("a vocabulary column"));
    if (column_.words.empty()) return Invalid("its vocabulary has no words");
    MUSTER_RETURN_IF_ERROR(CheckWords(field->type, column_.words));
    if (column_.oov_buckets < 0 || column_.oov_buckets > kMaxIds) {
      return Invalid("oov_buckets is ", column_.oov_buckets, "; it must be in [0, ", kMaxIds, "]");
    }
    if (column_.oov_buckets > 0 && column_.default_id != -1) {
      return Invalid("has both oov_buckets and a default id; unknown words can only go to one");
    }
    MUSTER_RETURN_IF_ERROR(NumIds());
    return DefaultId();
  }

  absl::Status DefaultId() const {
    const int64_t ids = spec_.NumIds(column_);
    if (column_.default_id >= -1 && column_.default_id < ids) return absl::OkStatus();
    return Invalid("the default id ", column_.default_id, " is not in [0, ", ids,
                   ") (-1 is for none)");
  }

  absl::Status Identity() const {
    MUSTER_ASSIGN_OR_RETURN(const Field* field, Input());
    if (field->type != ValueType::kInt) {
      return Invalid("an identity column needs an int input; '", field->name, "' is a ",
                     formats::ValueTypeName(field->type));
    }
    MUSTER_RETURN_IF_ERROR(Buckets());
    return DefaultId();
  }

  absl::Status Keys() const {
    MUSTER_RETURN_IF_ERROR(IntOrString("a keys column").status());
    const GrowthSpec& growth = column_.growth;
    if (growth.admit_after < 1) {
      return Invalid("admit_after is ", growth.admit_after, "; it must be 1 (at once) or more");
    }
    if (growth.expire_after < 0) {
      return Invalid("expire_after is ", growth.expire_after, "; it must be 0 (never) or more");
    }
    if (growth.capacity >= 0 && growth.capacity <= kMaxIds) return absl::OkStatus();
    return Invalid("capacity is ", growth.capacity, "; it must be in [0, ", kMaxIds,
                   "], 0 for no limit");
  }

  absl::Status Cross() const {
    if (column_.keys.size() < 2) return Invalid("a cross needs at least two keys");
    for (const std::string& key : column_.keys) {
      MUSTER_RETURN_IF_ERROR(Annotate(CrossKey(key), StrCat("key '", key, "'")));
    }
    return Buckets();
  }

  absl::Status CrossKey(const std::string& key) const {
    const ColumnSpec* const column = spec_.Find(key);
    if (const int index = spec_.schema.Find(key); index >= 0) {
      if (column != nullptr && column->kind == ColumnKind::kBucketized) {
        return Invalid("is both a field and a bucketized column; give the column another name");
      }
      if (spec_.schema.fields[index].type != ValueType::kFloat) return absl::OkStatus();
      return Invalid("is a float; bucketize it and give the name of that column");
    }
    if (column == nullptr) {
      std::vector<std::string> known;
      for (const Field& field : spec_.schema.fields) known.push_back(field.name);
      for (const ColumnSpec& other : spec_.columns) {
        if (other.is_categorical() && other.name != column_.name) known.push_back(other.name);
      }
      return Invalid("is neither a field nor a column", DidYouMean(key, known));
    }
    switch (column->kind) {
      case ColumnKind::kBucketized:
      case ColumnKind::kVocabulary:
      case ColumnKind::kIdentity:
        return absl::OkStatus();
      case ColumnKind::kHash:
        return Invalid("is a hash column; give its field '", column->input,
                       "' (hashing twice makes more collisions)");
      case ColumnKind::kKeys:
        return Invalid("is a keys column; give its field '", column->input, "'");
      case ColumnKind::kCross:
        return Invalid("is a cross; give its keys instead");
      case ColumnKind::kWeighted:
        return Invalid("is weighted, and a cross has no weights; give its column '", column->input,
                       "'");
      case ColumnKind::kSequenceNumeric:
      case ColumnKind::kNumeric:
      case ColumnKind::kIndicator:
      case ColumnKind::kEmbedding:
        break;
    }
    return Invalid(
        "is not categorical; give a field or a bucketized, vocabulary or identity column");
  }

  absl::StatusOr<const ColumnSpec*> Categorical() const {
    const ColumnSpec* const input = spec_.Find(column_.input);
    if (input != nullptr && input->is_categorical()) return input;
    if (input != nullptr) return Invalid("its input '", input->name, "' is not categorical");
    std::vector<std::string> known;
    for (const ColumnSpec& other : spec_.columns) {
      if (other.is_categorical()) known.push_back(other.name);
    }
    return Invalid("its input '", column_.input, "' is not a categorical column",
                   DidYouMean(column_.input, known));
  }

  absl::Status Indicator() const {
    MUSTER_ASSIGN_OR_RETURN(const ColumnSpec* input, Categorical());
    if (spec_.GetGrowth(*input) != nullptr) {
      return Invalid("nobody knows how many keys '", input->name,
                     "' will have; use an embedding of it, or '", input->name,
                     "' itself in a linear model");
    }
    const int64_t ids = spec_.NumIds(*input);
    if (ids <= kMaxIndicator) return absl::OkStatus();
    return Invalid("would be ", ids, " floats a row; at most ", kMaxIndicator,
                   " are possible (use '", input->name, "' itself or an embedding of it)");
  }

  absl::Status Weighted() const {
    MUSTER_ASSIGN_OR_RETURN(const ColumnSpec* input, Categorical());
    if (input->kind == ColumnKind::kWeighted) {
      return Invalid("'", input->name, "' is weighted already");
    }
    MUSTER_ASSIGN_OR_RETURN(const Field* weights, FieldNamed(column_.weights));
    if (weights->type == ValueType::kString) {
      return Invalid("weights are ints or floats; '", weights->name, "' is a string");
    }
    const bool lists = spec_.HasLists(*input);
    if (lists == weights->list) return absl::OkStatus();
    return Invalid("'", input->name, "' has ", lists ? "a list" : "one value",
                   " a row, its weights '", weights->name, "' ", lists ? "one value" : "a list");
  }

  absl::Status Embedding() const {
    MUSTER_ASSIGN_OR_RETURN(const ColumnSpec* input, Categorical());
    if (column_.dimension < 1 || column_.dimension > kMaxDimension) {
      return Invalid("dimension is ", column_.dimension, "; it must be in [1, ", kMaxDimension,
                     "]");
    }
    if (!(column_.max_norm >= 0) || !std::isfinite(static_cast<float>(column_.max_norm))) {
      return Invalid("max_norm is ", column_.max_norm, "; it must be a finite float above 0");
    }
    if (column_.pooling == Pooling::kNone) return absl::OkStatus();
    if (column_.combiner != Combiner::kMean) return Invalid("has both a pooling and a combiner");
    if (input->kind == ColumnKind::kWeighted) {
      return Invalid("the steps of a sequence have no weights; '", input->name, "' is weighted");
    }
    if (spec_.HasLists(*input)) return absl::OkStatus();
    return Invalid("a pooling is for sequences; '", input->name, "' has one id a row");
  }

 private:
  const FeatureSpec& spec_;
  const ColumnSpec& column_;
};

// Columns that share a table: the same shape of it, and a name that is a variable's.
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

// Columns that ask for rows of one length must ask for the same.
absl::Status CheckShapes(const FeatureSpec& spec) {
  std::map<std::string, const ColumnSpec*> first;
  for (const ColumnSpec& column : spec.columns) {
    if (column.kind != ColumnKind::kNumeric && column.kind != ColumnKind::kBucketized) continue;
    const ColumnSpec& other = *first.emplace(column.input, &column).first->second;
    if (other.shape == column.shape) continue;
    return Invalid("column '", column.name, "': shape is ", column.shape, ", and '", other.name,
                   "', which reads '", column.input, "' too, has ", other.shape);
  }
  return absl::OkStatus();
}

}  // namespace

// The words of a vocabulary over a field of `type`.
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
    MUSTER_RETURN_IF_ERROR(Annotate(ColumnCheck(spec, column).Run(), context));
  }
  MUSTER_RETURN_IF_ERROR(CheckShapes(spec));
  return CheckShared(spec);
}

}  // namespace muster::features
