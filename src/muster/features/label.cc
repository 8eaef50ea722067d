// Labels.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "muster/base/nearest.h"
#include "muster/features/dense.h"

namespace muster::features {
namespace {

// Looks up the words by a vocabulary column over the label's field. What that drops as missing is
// no class: '', and -1 unless it is one of the words (FindMinusOne).
std::unique_ptr<IdLookup> MakeLabelLookup(const FeatureSpec& spec) {
  if (spec.label.words.empty()) return nullptr;
  ColumnSpec column;
  column.kind = ColumnKind::kVocabulary;
  column.input = spec.label.input;
  column.words = spec.label.words;
  return MakeVocabularyLookup(spec.schema, column);
}

// Returns the place of -1 among the words of an int label, or -1 if it is not one of them.
int64_t FindMinusOne(const FeatureSpec& spec) {
  const formats::Field& field = spec.schema.fields[spec.schema.Find(spec.label.input)];
  const auto found = std::ranges::find(spec.label.words, "-1");
  if (field.type != formats::ValueType::kInt || found == spec.label.words.end()) return -1;
  return found - spec.label.words.begin();
}

}  // namespace

LabelTransform::LabelTransform(const FeatureSpec& spec)
    : spec_(spec.label),
      field_(spec.schema.Find(spec.label.input)),
      type_(spec.schema.fields[field_].type),
      words_(MakeLabelLookup(spec)),
      minus_one_(FindMinusOne(spec)) {}

void LabelTransform::MarkFingerprints(std::vector<bool>* fields) const {
  if (words_ != nullptr && words_->needs_fingerprints()) (*fields)[field_] = true;
}

absl::Status LabelTransform::Apply(const formats::Columns& rows, const Scratch& scratch,
                                   std::vector<float>* labels, int* bad_row) const {
  labels->assign(static_cast<size_t>(rows.rows()) * static_cast<size_t>(spec_.width), 0);
  if (words_ != nullptr) return FromWords(rows, scratch, labels, bad_row);
  const formats::Column& input = rows.column(field_);
  if (spec_.form == LabelSpec::Form::kSet) return FromIds(input, rows.rows(), labels, bad_row);
  if (spec_.form == LabelSpec::Form::kVector) {
    MUSTER_RETURN_IF_ERROR(CheckWidths(input, rows.rows(), bad_row));
  }
  return FromNumbers(input, labels, bad_row);
}

absl::Status LabelTransform::CheckWidths(const formats::Column& input, int rows,
                                         int* bad_row) const {
  for (int row = 0; row < rows; ++row) {
    const uint32_t count = input.offsets[row + 1] - input.offsets[row];
    if (std::cmp_equal(count, spec_.width)) continue;
    *bad_row = row;
    return absl::InvalidArgumentError(
        StrCat("label '", spec_.input, "': ", count, " values, the head needs ", spec_.width));
  }
  return absl::OkStatus();
}

absl::Status LabelTransform::FromNumbers(const formats::Column& input, std::vector<float>* labels,
                                         int* bad_row) const {
  if (type_ == formats::ValueType::kInt) {
    std::transform(input.ints.begin(), input.ints.end(), labels->begin(),
                   [](int64_t value) { return static_cast<float>(value); });
    return absl::OkStatus();
  }
  std::copy(input.floats.begin(), input.floats.end(), labels->begin());
  const size_t bad = FirstNotFinite(labels->data(), labels->size());
  if (bad == labels->size()) return absl::OkStatus();
  *bad_row = static_cast<int>(bad) / spec_.width;
  return absl::InvalidArgumentError(StrCat("label '", spec_.input, "': the value ", (*labels)[bad],
                                           " is not finite; mend or leave out the row"));
}

absl::Status LabelTransform::FromIds(const formats::Column& input, int rows,
                                     std::vector<float>* labels, int* bad_row) const {
  for (int row = 0; row < rows; ++row) {
    for (uint32_t i = input.offsets[row]; i < input.offsets[row + 1]; ++i) {
      const int64_t id = input.ints[i];
      if (id < 0 || id >= spec_.width) {
        *bad_row = row;
        return absl::InvalidArgumentError(
            StrCat("label '", spec_.input, "': ", id, " is not a class of 0 to ", spec_.width - 1));
      }
      (*labels)[static_cast<size_t>(row) * static_cast<size_t>(spec_.width) +
                static_cast<size_t>(id)] = 1;
    }
  }
  return absl::OkStatus();
}

absl::Status LabelTransform::FromWords(const formats::Columns& rows, const Scratch& scratch,
                                       std::vector<float>* labels, int* bad_row) const {
  std::array<int64_t, kBlock> places;
  const formats::Column& input = rows.column(field_);
  const bool is_set = spec_.form == LabelSpec::Form::kSet;
  const size_t values = NumValues(input, type_);
  for (size_t first = 0; first < values; first += kBlock) {
    const int count = static_cast<int>(std::min<size_t>(kBlock, values - first));
    size_t bad_value = 0;
    MUSTER_RETURN_IF_ERROR(words_->Lookup(rows, scratch, first, count, places.data(), &bad_value));
    for (int i = 0; i < count; ++i) {
      const size_t at = first + static_cast<size_t>(i);
      const int row = is_set ? FindRow(input, at) : static_cast<int>(at);
      if (places[i] < 0 && minus_one_ >= 0 && input.ints[at] == -1) places[i] = minus_one_;
      if (places[i] < 0) {
        *bad_row = row;
        const std::string value = type_ == formats::ValueType::kInt
                                      ? StrCat(input.ints[at])
                                      : std::string(input.strings[at]);
        return absl::InvalidArgumentError(StrCat("label '", spec_.input, "': the value ",
                                                 Shown(value), " is not one of its words",
                                                 DidYouMean(value, spec_.words)));
      }
      if (is_set) {
        (*labels)[static_cast<size_t>(row) * static_cast<size_t>(spec_.width) +
                  static_cast<size_t>(places[i])] = 1;
      } else {
        (*labels)[at] = static_cast<float>(places[i]);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CopyWeights(const formats::Column& input, formats::ValueType type,
                         std::vector<float>* weights, int* bad_row) {
  if (type == formats::ValueType::kInt) {
    weights->assign(input.ints.begin(), input.ints.end());
  } else {
    weights->assign(input.floats.begin(), input.floats.end());
  }
  for (size_t row = 0; row < weights->size(); ++row) {
    const float weight = (*weights)[row];
    if (weight >= 0 && std::isfinite(weight)) continue;
    *bad_row = static_cast<int>(row);
    return absl::InvalidArgumentError(
        StrCat("the weight ", weight, " is not a number of 0 or more; mend or leave out the row"));
  }
  return absl::OkStatus();
}

}  // namespace muster::features
