// What can be wrong with a FeatureSpec by itself.
#include <cmath>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"

#include "muster/base/nearest.h"
#include "muster/features/column.h"

namespace muster::features {
namespace {

using formats::Field;
using formats::ValueType;

constexpr int64_t kMaxIds = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxIndicator = 1 << 20;  // floats a row
constexpr int kMaxDimension = 1 << 16;

template <typename... Arguments>
absl::Status Invalid(const Arguments&... arguments) {
  return absl::InvalidArgumentError(StrCat(arguments...));
}

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
      case ColumnKind::kCross:
        return Cross();
      case ColumnKind::kIndicator:
        return Indicator();
      case ColumnKind::kEmbedding:
        return Embedding();
    }
    return Invalid("unknown kind ", static_cast<int>(column_.kind));
  }

 private:
  absl::StatusOr<const Field*> Input() const {
    const int index = spec_.schema.Find(column_.input);
    if (index >= 0) return &spec_.schema.fields[index];
    std::vector<std::string> known;
    for (const Field& field : spec_.schema.fields) known.push_back(field.name);
    return Invalid("unknown input '", column_.input, "'", DidYouMean(column_.input, known));
  }

  absl::Status ScalarNumber(std::string_view what) const {
    MUSTER_ASSIGN_OR_RETURN(const Field* field, Input());
    if (field->type == ValueType::kString) {
      return Invalid(what, " needs an int or float input; '", field->name, "' is a string");
    }
    if (field->list) {
      return Invalid(what, " needs one number a row; '", field->name, "' is a list");
    }
    return absl::OkStatus();
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
    MUSTER_RETURN_IF_ERROR(ScalarNumber("a numeric column"));
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
    MUSTER_RETURN_IF_ERROR(ScalarNumber("a bucketized column"));
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
    if (column_.num_ids() <= kMaxIds) return absl::OkStatus();
    return Invalid("has ", column_.num_ids(), " ids; at most ", kMaxIds, " are possible");
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
    if (column_.default_id >= -1 && column_.default_id < column_.num_ids()) {
      return absl::OkStatus();
    }
    return Invalid("the default id ", column_.default_id, " is not in [0, ", column_.num_ids(),
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
      case ColumnKind::kCross:
        return Invalid("is a cross; give its keys instead");
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
    if (input->num_ids() <= kMaxIndicator) return absl::OkStatus();
    return Invalid("would be ", input->num_ids(), " floats a row; at most ", kMaxIndicator,
                   " are possible (use '", input->name, "' itself or an embedding of it)");
  }

  absl::Status Embedding() const {
    MUSTER_RETURN_IF_ERROR(Categorical().status());
    if (column_.dimension >= 1 && column_.dimension <= kMaxDimension) return absl::OkStatus();
    return Invalid("dimension is ", column_.dimension, "; it must be in [1, ", kMaxDimension, "]");
  }

 private:
  const FeatureSpec& spec_;
  const ColumnSpec& column_;
};

absl::Status CheckField(const Field& field) {
  if (field.name.empty()) return Invalid("a field without a name");
  if (field.truncate && field.type != ValueType::kInt) return Invalid("truncate is for ints only");
  if (!field.has_default) return absl::OkStatus();
  if (field.list) return Invalid("a list has no default: a missing one is empty");
  if (field.default_value.index() != static_cast<size_t>(field.type)) {
    return Invalid("its default is not ", field.type == ValueType::kInt ? "an " : "a ",
                   formats::ValueTypeName(field.type));
  }
  return absl::OkStatus();
}

absl::Status CheckSchema(const formats::Schema& schema) {
  absl::flat_hash_set<std::string> names;
  for (const Field& field : schema.fields) {
    MUSTER_RETURN_IF_ERROR(Annotate(CheckField(field), StrCat("field '", field.name, "'")));
    if (!names.insert(field.name).second) return Invalid("field '", field.name, "' is there twice");
  }
  return absl::OkStatus();
}

// A field that the label or the key names.
absl::StatusOr<const Field*> ScalarField(const formats::Schema& schema, const std::string& name) {
  const int index = schema.Find(name);
  if (index < 0) {
    std::vector<std::string> known;
    for (const Field& field : schema.fields) known.push_back(field.name);
    return Invalid("unknown input", DidYouMean(name, known));
  }
  if (schema.fields[index].list) return Invalid("needs one value a row, not a list");
  return &schema.fields[index];
}

// The form of a label fits its field.
absl::StatusOr<const Field*> LabelField(const FeatureSpec& spec) {
  const LabelSpec& label = spec.label;
  if (label.width < 1) return Invalid("has no numbers a row");
  if (label.form == LabelSpec::Form::kOne) return ScalarField(spec.schema, label.input);
  const int index = spec.schema.Find(label.input);
  if (index >= 0 && !spec.schema.fields[index].list) {
    return Invalid("needs to be a list ('list: true'), since its head learns ", label.width,
                   " numbers a row");
  }
  if (index >= 0) return &spec.schema.fields[index];
  return ScalarField(spec.schema, label.input);  // which says that it is unknown
}

absl::Status CheckLabel(const FeatureSpec& spec) {
  if (spec.label.input.empty()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const Field* field, LabelField(spec));
  if (spec.label.words.empty()) {
    if (field->type == ValueType::kString) {
      return Invalid("is a string; list the words that are its classes");
    }
    if (spec.label.form == LabelSpec::Form::kSet && field->type != ValueType::kInt) {
      return Invalid("is a list of floats; 'ids' are ints");
    }
    return absl::OkStatus();
  }
  if (field->type == ValueType::kFloat) return Invalid("is a float and cannot have words");
  if (spec.label.form == LabelSpec::Form::kSet &&
      std::cmp_not_equal(spec.label.words.size(), spec.label.width)) {
    return Invalid("has ", spec.label.words.size(), " words for ", spec.label.width, " classes");
  }
  return CheckWords(field->type, spec.label.words);
}

absl::Status CheckWeight(const FeatureSpec& spec) {
  if (spec.weight.empty()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const Field* field, ScalarField(spec.schema, spec.weight));
  if (field->type == ValueType::kString) return Invalid("is a string; a weight is a number");
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const FeatureSpec& spec) {
  // A baseline predicts from nothing at all.
  if (spec.schema.fields.empty() && !(spec.columns.empty() && spec.label.input.empty())) {
    return Invalid("the schema has no fields");
  }
  MUSTER_RETURN_IF_ERROR(CheckSchema(spec.schema));
  absl::flat_hash_set<std::string> names;
  for (const ColumnSpec& column : spec.columns) {
    if (column.name.empty()) return Invalid("a column without a name");
    const std::string context = StrCat("column '", column.name, "'");
    if (!names.insert(column.name).second) return Invalid(context, ": the name is there twice");
    MUSTER_RETURN_IF_ERROR(Annotate(ColumnCheck(spec, column).Run(), context));
  }
  MUSTER_RETURN_IF_ERROR(Annotate(CheckLabel(spec), StrCat("label '", spec.label.input, "'")));
  MUSTER_RETURN_IF_ERROR(Annotate(CheckWeight(spec), StrCat("weight '", spec.weight, "'")));
  if (!spec.key.empty()) {
    MUSTER_RETURN_IF_ERROR(
        Annotate(ScalarField(spec.schema, spec.key).status(), StrCat("key '", spec.key, "'")));
  }
  return absl::OkStatus();
}

}  // namespace muster::features
