// Labels.
#include <algorithm>
#include <array>

#include "muster/base/nearest.h"
#include "muster/features/dense.h"

namespace muster::features {
namespace {

// The words as a vocabulary column over the label's field; what it drops as missing ('' and -1) is
// no class.
std::unique_ptr<IdLookup> MakeLabelLookup(const FeatureSpec& spec) {
  if (spec.label.words.empty()) return nullptr;
  ColumnSpec column;
  column.kind = ColumnKind::kVocabulary;
  column.input = spec.label.input;
  column.words = spec.label.words;
  return MakeVocabularyLookup(spec.schema, column);
}

}  // namespace

LabelTransform::LabelTransform(const FeatureSpec& spec)
    : spec_(spec.label),
      field_(spec.schema.Find(spec.label.input)),
      type_(spec.schema.fields[field_].type),
      words_(MakeLabelLookup(spec)) {}

void LabelTransform::MarkFingerprints(std::vector<bool>* fields) const {
  if (words_ != nullptr && words_->needs_fingerprints()) (*fields)[field_] = true;
}

absl::Status LabelTransform::Apply(const formats::Columns& rows, const Scratch& scratch,
                                   std::vector<float>* labels, int* bad_row) const {
  labels->resize(rows.rows());
  if (words_ != nullptr) return FromWords(rows, scratch, labels, bad_row);
  const formats::Column& input = rows.column(field_);
  if (type_ == formats::ValueType::kInt) {
    std::transform(input.ints.begin(), input.ints.end(), labels->begin(),
                   [](int64_t value) { return static_cast<float>(value); });
    return absl::OkStatus();
  }
  std::copy(input.floats.begin(), input.floats.end(), labels->begin());
  const size_t bad = FirstNotFinite(labels->data(), labels->size());
  if (bad == labels->size()) return absl::OkStatus();
  *bad_row = static_cast<int>(bad);
  return absl::InvalidArgumentError(StrCat("row ", bad, ", label '", spec_.input, "': the value ",
                                           (*labels)[bad],
                                           " is not finite; mend or leave out the row"));
}

absl::Status LabelTransform::FromWords(const formats::Columns& rows, const Scratch& scratch,
                                       std::vector<float>* labels, int* bad_row) const {
  std::array<int64_t, kBlock> places;
  for (int first = 0; first < rows.rows(); first += kBlock) {
    const int count = std::min(kBlock, rows.rows() - first);
    size_t bad_value = 0;
    MUSTER_RETURN_IF_ERROR(words_->Lookup(rows, scratch, first, count, places.data(), &bad_value));
    for (int i = 0; i < count; ++i) {
      if (places[i] < 0) {
        *bad_row = first + i;
        const formats::Column& input = rows.column(field_);
        const std::string value = type_ == formats::ValueType::kInt
                                      ? StrCat(input.ints[*bad_row])
                                      : std::string(input.strings[*bad_row]);
        return absl::InvalidArgumentError(
            StrCat("row ", *bad_row, ", label '", spec_.input, "': the value ", Shown(value),
                   " is not one of its words", DidYouMean(value, spec_.words)));
      }
      (*labels)[first + i] = static_cast<float>(places[i]);
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::features
