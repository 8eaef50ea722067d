// Checks what can be wrong with a FeatureSpec by itself.
#include "muster/features/validate.h"

#include <utility>

#include "absl/container/flat_hash_set.h"

#include "muster/base/nearest.h"

namespace muster::features {
namespace {

using formats::Field;
using formats::ValueType;

absl::Status CheckField(const Field& field) {
  if (field.name.empty()) return Invalid("a field without a name");
  if (field.truncate && field.type != ValueType::kInt) return Invalid("truncate is for ints only");
  if (field.date && field.type != ValueType::kInt) return Invalid("date is for ints only");
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

// Finds a field that the label or the key names.
absl::StatusOr<const Field*> ScalarField(const formats::Schema& schema, const std::string& name) {
  const int index = schema.Find(name);
  if (index < 0) {
    std::vector<std::string> known;
    for (const Field& field : schema.fields) known.push_back(field.name);
    return Invalid("unknown input", DidYouMean(name, known));
  }
  if (schema.fields[index].list) return Invalid("needs one value per row, not a list");
  return &schema.fields[index];
}

// Checks that the form of a label fits its field.
absl::StatusOr<const Field*> LabelField(const FeatureSpec& spec) {
  const LabelSpec& label = spec.label;
  if (label.width < 1) return Invalid("has no numbers per row");
  if (label.form == LabelSpec::Form::kOne) return ScalarField(spec.schema, label.input);
  const int index = spec.schema.Find(label.input);
  if (index >= 0 && !spec.schema.fields[index].list) {
    return Invalid("needs to be a list ('list: true'), since its head learns ", label.width,
                   " numbers per row");
  }
  if (index >= 0) return &spec.schema.fields[index];
  return ScalarField(spec.schema, label.input);  // which reports that the field is unknown
}

absl::Status CheckLabel(const FeatureSpec& spec) {
  if (spec.label.input.empty()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const Field* field, LabelField(spec));
  const LabelSpec& label = spec.label;
  if (label.words.empty()) {
    if (field->type == ValueType::kString) {
      return Invalid("is a string; list the words that are its classes, as in 'label: {input: ",
                     label.input, ", words: [\"no\", \"yes\"]}'");
    }
    if (label.form == LabelSpec::Form::kSet && field->type != ValueType::kInt) {
      return Invalid("is a list of floats; 'ids: true' needs a list of ints");
    }
    return absl::OkStatus();
  }
  if (field->type == ValueType::kFloat) return Invalid("is a float and cannot have words");
  if (label.form == LabelSpec::Form::kSet && std::cmp_not_equal(label.words.size(), label.width)) {
    return Invalid("has ", label.words.size(), " words for ", label.width, " classes");
  }
  return CheckWords(field->type, label.words);
}

absl::Status CheckWeight(const FeatureSpec& spec) {
  if (spec.weight.empty()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const Field* field, ScalarField(spec.schema, spec.weight));
  if (field->type == ValueType::kString) return Invalid("is a string; a weight is a number");
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const FeatureSpec& spec) {
  // A baseline model predicts without any field.
  if (spec.schema.fields.empty() && !(spec.columns.empty() && spec.label.input.empty())) {
    return Invalid("the schema has no fields");
  }
  MUSTER_RETURN_IF_ERROR(CheckSchema(spec.schema));
  MUSTER_RETURN_IF_ERROR(CheckColumns(spec));
  MUSTER_RETURN_IF_ERROR(Annotate(CheckLabel(spec), StrCat("label '", spec.label.input, "'")));
  MUSTER_RETURN_IF_ERROR(Annotate(CheckWeight(spec), StrCat("weight '", spec.weight, "'")));
  if (!spec.key.empty()) {
    MUSTER_RETURN_IF_ERROR(
        Annotate(ScalarField(spec.schema, spec.key).status(), StrCat("key '", spec.key, "'")));
  }
  return absl::OkStatus();
}

}  // namespace muster::features
