// Numeric columns: float32 arithmetic, as a TensorFlow graph of Maximum, Minimum, Log1p, Sub and
// RealDiv does it.
#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/numbers.h"

#include "muster/features/column_type.h"
#include "muster/formats/yaml_emitter.h"

namespace muster::features {
namespace {

class NumericTransform final : public DenseTransform {
 public:
  NumericTransform(const FeatureSpec& spec, const ColumnSpec& column)
      : normalizer_(spec.schema, column), shape_(column.shape), flag_(column.missing_flag) {}

  void MarkFingerprints(std::vector<bool>*) const override {}

  absl::Status Apply(const formats::Columns& rows, Scratch*, DenseColumn* dense,
                     int* bad_row) const override {
    MUSTER_RETURN_IF_ERROR(CheckLengths(rows.column(normalizer_.field()), shape_, bad_row));
    dense->width = shape_ + (flag_ ? 1 : 0);
    MUSTER_RETURN_IF_ERROR(normalizer_.Apply(rows, &dense->values, bad_row));
    if (flag_) AddFlags(rows.column(normalizer_.field()).missing, &dense->values);
    return absl::OkStatus();
  }

 private:
  // Turns the one value of a row into two: the value, and a flag for a missing one.
  static void AddFlags(const std::vector<uint8_t>& missing, std::vector<float>* values) {
    const size_t rows = values->size();
    values->resize(2 * rows);
    for (size_t row = rows; row-- > 0;) {
      (*values)[2 * row] = (*values)[row];
      (*values)[2 * row + 1] = missing[row] != 0 ? 1.0F : 0.0F;
    }
  }

  Normalizer normalizer_;
  int shape_;
  bool flag_;
};

constexpr const char* kImputes[] = {"none", "value", "mean", "median"};
constexpr double kLargest = 1e30;
constexpr double kFloatWhole = 1 << 24;  // a float32 has each whole number up to this one
constexpr double kInt64Whole = 4e18;

void ParseImpute(const formats::YamlReader& node, ColumnSpec* column) {
  column->missing_flag = node.Bool("missing_flag", false);
  if (!node.Has("impute")) {
    if (node.Has("imputed"))
      node.Fail(
          "'imputed' is the number that 'impute: mean' or 'median' has found; give it only with "
          "one of them");
    return;
  }
  const formats::YamlReader impute = node.At("impute");
  const std::string how = impute.AsString();
  if (how == kImputes[static_cast<int>(Impute::kMean)]) column->impute = Impute::kMean;
  if (how == kImputes[static_cast<int>(Impute::kMedian)]) column->impute = Impute::kMedian;
  if (column->impute != Impute::kNone) {
    column->to_measure |= !node.Has("imputed");
    column->imputed = node.Number("imputed", 0, -kLargest, kLargest);
    return;
  }
  column->impute = Impute::kValue;
  double number = 0;
  if (!absl::SimpleAtod(how, &number)) {
    return impute.Fail(StrCat("is '", how, "'; give mean, median or a number"));
  }
  column->imputed = impute.AsNumber(-kLargest, kLargest);
}

void PrintImpute(const ColumnSpec& column, YAML::Emitter& out) {
  const bool is_measured = column.impute == Impute::kMean || column.impute == Impute::kMedian;
  if (column.impute == Impute::kValue) formats::EmitNumber(out, "impute", column.imputed);
  if (is_measured) {
    out << YAML::Key << "impute" << YAML::Value << kImputes[static_cast<int>(column.impute)];
    if (!column.to_measure) formats::EmitNumber(out, "imputed", column.imputed);
  }
  formats::EmitFlag(out, "missing_flag", column.missing_flag);
}

// The number for a missing value is the default of the column's input.
absl::Status CheckImpute(const ColumnSpec& column, const formats::Field& field) {
  if (column.impute == Impute::kNone && !column.missing_flag) return absl::OkStatus();
  if (field.list) {
    return Invalid("impute and missing_flag are for an input with one value per row; '", field.name,
                   "' is a list");
  }
  if (column.missing_flag && !field.has_default) {
    return Invalid("missing_flag needs a number for a row without a value: give impute (mean, ",
                   "median or a number), or a default to the input '", field.name, "'");
  }
  if (column.impute == Impute::kValue && field.type == formats::ValueType::kInt &&
      column.imputed != std::trunc(column.imputed)) {
    return Invalid("impute is ", column.imputed, ", and '", field.name,
                   "' is an int; give a whole number, or make the input a float");
  }
  return absl::OkStatus();
}

// Counts may have a mark such as -1 or -2 in place of a number, which has no logarithm.
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
    node.CheckKeys({"numeric", "shape", "log1p", "mean", "stddev", "normalize", "clip", "impute",
                    "imputed", "missing_flag"});
    column->input = node.At("numeric").AsString();
    ParseScale(node, column);
    ParseImpute(node, column);
    if (!column->to_measure) return;
    // If only some of the numbers were given, all of them are measured.
    if (column->normalize) {
      column->mean = 0;
      column->stddev = 1;
    }
    if (column->impute != Impute::kValue) column->imputed = 0;
  }
  void Print(const ColumnSpec& column, YAML::Emitter& out) const override {
    formats::EmitText(out, "numeric", column.input);
    PrintScale(column, out);
    PrintImpute(column, out);
  }
  absl::Status Check(const ColumnCheck& check) const override {
    MUSTER_RETURN_IF_ERROR(check.Numbers("a numeric column"));
    MUSTER_ASSIGN_OR_RETURN(const formats::Field* field, check.Input());
    MUSTER_RETURN_IF_ERROR(CheckImpute(check.column(), *field));
    return check.Scale();
  }
  int Width(const FeatureSpec& /*spec*/, const ColumnSpec& column) const override {
    return column.shape + (column.missing_flag ? 1 : 0);
  }
  bool has_fixed_length() const override { return true; }

  std::unique_ptr<DenseTransform> MakeDense(const FeatureSpec& spec,
                                            const ColumnSpec& column) const override {
    return std::make_unique<NumericTransform>(spec, column);
  }
};

}  // namespace

int64_t GetWholeMean(const ColumnSpec& column) {
  const double whole = std::nearbyint(column.mean);
  const bool is_first = !std::isfinite(column.clip_low) && !column.log1p;
  const bool is_exact = whole == column.mean;
  if (!is_first || (!is_exact && std::abs(whole) < kFloatWhole) || std::abs(whole) > kInt64Whole) {
    return 0;
  }
  return static_cast<int64_t>(whole);
}

Normalizer::Normalizer(const formats::Schema& schema, const ColumnSpec& column)
    : field_(schema.Find(column.input)),
      type_(schema.fields[field_].type),
      low_(column.clip_low),
      high_(column.clip_high),
      log1p_(column.log1p),
      stddev_(static_cast<float>(column.stddev)) {
  if (type_ == formats::ValueType::kInt) whole_mean_ = GetWholeMean(column);
  mean_ = static_cast<float>(column.mean - static_cast<double>(whole_mean_));
}

absl::Status Normalizer::Apply(const formats::Columns& rows, std::vector<float>* values,
                               int* bad_row) const {
  const formats::Column& input = rows.column(field_);
  values->resize(NumValues(input, type_));
  if (type_ == formats::ValueType::kInt) {
    // The difference may wrap, as TensorFlow's does.
    std::transform(input.ints.begin(), input.ints.end(), values->begin(),
                   [mean = static_cast<uint64_t>(whole_mean_)](int64_t value) {
                     const uint64_t difference = static_cast<uint64_t>(value) - mean;
                     return static_cast<float>(static_cast<int64_t>(difference));
                   });
  } else {
    std::copy(input.floats.begin(), input.floats.end(), values->begin());
  }
  if (std::isfinite(low_)) {
    for (float& value : *values) value = std::min(std::max(value, low_), high_);
  }
  if (log1p_) {
    for (float& value : *values) value = value == 0 ? value : Log1p(value);
  }
  if (mean_ != 0 || stddev_ != 1) {
    for (float& value : *values) value = (value - mean_) / stddev_;
  }
  const size_t bad = FirstNotFinite(values->data(), values->size());
  if (bad == values->size()) return absl::OkStatus();
  *bad_row = FindRow(input, bad);
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
