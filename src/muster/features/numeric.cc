// Numeric columns: float32 arithmetic, as a TensorFlow graph of Log1p, Sub and RealDiv does it.
#include <algorithm>
#include <bit>
#include <cmath>

#include "muster/features/column_type.h"
#include "muster/formats/yaml_emitter.h"

namespace muster::features {
namespace {

class NumericTransform final : public DenseTransform {
 public:
  NumericTransform(const FeatureSpec& spec, const ColumnSpec& column)
      : normalizer_(spec.schema, column), shape_(column.shape) {}

  void MarkFingerprints(std::vector<bool>*) const override {}

  absl::Status Apply(const formats::Columns& rows, Scratch*, DenseColumn* dense,
                     int* bad_row) const override {
    MUSTER_RETURN_IF_ERROR(CheckLengths(rows.column(normalizer_.field()), shape_, bad_row));
    dense->width = shape_;
    return normalizer_.Apply(rows, &dense->values, bad_row);
  }

 private:
  Normalizer normalizer_;
  int shape_;
};

// Counts have a mark such as -1 or -2 in the place of a number, for which there is no logarithm.
float Log1p(float value) {
  const bool is_mark = value <= -1 && std::isfinite(value);
  return is_mark ? 0 : std::log1p(value);
}
class NumericColumn final : public ColumnType {
 public:
  ColumnKind kind() const override { return ColumnKind::kNumeric; }
  std::string_view name() const override { return "numeric"; }
  bool is_categorical() const override { return false; }

  void Parse(const formats::YamlReader& node, const ColumnFiles& /*files*/,
             ColumnSpec* column) const override {
    node.CheckKeys({"numeric", "shape", "log1p", "mean", "stddev"});
    column->input = node.At("numeric").AsString();
    ParseScale(node, column);
  }
  void Print(const ColumnSpec& column, YAML::Emitter& out) const override {
    formats::EmitText(out, "numeric", column.input);
    PrintScale(column, out);
  }
  absl::Status Check(const ColumnCheck& check) const override {
    MUSTER_RETURN_IF_ERROR(check.Numbers("a numeric column"));
    return check.Scale();
  }
  bool has_fixed_length() const override { return true; }

  std::unique_ptr<DenseTransform> MakeDense(const FeatureSpec& spec,
                                            const ColumnSpec& column) const override {
    return std::make_unique<NumericTransform>(spec, column);
  }
};

}  // namespace

Normalizer::Normalizer(const formats::Schema& schema, const ColumnSpec& column)
    : field_(schema.Find(column.input)),
      type_(schema.fields[field_].type),
      log1p_(column.log1p),
      mean_(static_cast<float>(column.mean)),
      stddev_(static_cast<float>(column.stddev)) {}

absl::Status Normalizer::Apply(const formats::Columns& rows, std::vector<float>* values,
                               int* bad_row) const {
  const formats::Column& input = rows.column(field_);
  values->resize(NumValues(input, type_));
  if (type_ == formats::ValueType::kInt) {
    std::transform(input.ints.begin(), input.ints.end(), values->begin(),
                   [](int64_t value) { return static_cast<float>(value); });
  } else {
    std::copy(input.floats.begin(), input.floats.end(), values->begin());
  }
  if (log1p_) {
    for (float& value : *values) value = value == 0 ? value : Log1p(value);
  }
  if (mean_ != 0 || stddev_ != 1) {
    for (float& value : *values) value = (value - mean_) / stddev_;
  }
  const size_t bad = FirstNotFinite(values->data(), values->size());
  if (bad == values->size()) return absl::OkStatus();
  *bad_row = RowOfValue(input, bad);
  return NotFinite(input, bad, (*values)[bad]);
}

absl::Status Normalizer::NotFinite(const formats::Column& input, size_t i, float result) const {
  const float value =
      type_ == formats::ValueType::kInt ? static_cast<float>(input.ints[i]) : input.floats[i];
  const std::string became = std::isfinite(value) ? StrCat(" becomes ", result, ", which") : "";
  return absl::InvalidArgumentError(
      StrCat("the value ", value, became, " is not finite; mend or leave out the row"));
}

size_t FirstNotFinite(const float* values, size_t count) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t any = 0;
  for (size_t i = 0; i < count; ++i) {
    any |= (std::bit_cast<uint32_t>(values[i]) & kExponent) == kExponent;
  }
  if (any == 0) return count;
  return static_cast<size_t>(
      std::find_if(values, values + count, [](float value) { return !std::isfinite(value); }) -
      values);
}

const ColumnType& GetNumericColumn() {
  static const NumericColumn kColumn;
  return kColumn;
}

}  // namespace muster::features
