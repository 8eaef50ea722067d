#include "muster/features/measure.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"

#include "muster/base/random.h"
#include "muster/data/number_sums.h"
#include "muster/features/dense.h"

namespace muster::features {
namespace {

constexpr double kLeastDeviation = 1e-30;

bool IsMeasured(const ColumnSpec& column) {
  return column.normalize || column.impute == Impute::kMean || column.impute == Impute::kMedian;
}

// Returns the column without the numbers that come from the data.
ColumnSpec WithoutNumbers(ColumnSpec column) {
  if (column.normalize) {
    column.mean = 0;
    column.stddev = 1;
  }
  if (column.impute != Impute::kValue) column.imputed = 0;
  column.to_measure = false;
  return column;
}

double GetMedian(std::vector<float> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (double{*middle} + double{*std::max_element(values.begin(), middle)}) / 2;
}

}  // namespace

std::string FindUnmeasured(const FeatureSpec& spec) {
  const auto found = std::ranges::find_if(spec.columns, &ColumnSpec::to_measure);
  return found == spec.columns.end() ? "" : found->name;
}

bool DependsOnData(const FeatureSpec& spec) {
  return std::ranges::any_of(spec.columns, IsMeasured);
}

void ApplyImputes(FeatureSpec* spec) {
  for (const ColumnSpec& column : spec->columns) {
    const int index = spec->schema.Find(column.input);
    if (index < 0 || column.kind != ColumnKind::kNumeric) continue;
    formats::Field& field = spec->schema.fields[static_cast<size_t>(index)];
    field.mark_missing |= column.missing_flag || (column.impute != Impute::kNone && !field.list);
    if (column.impute == Impute::kNone || field.list) continue;
    field.has_default = true;
    if (field.type == formats::ValueType::kInt) {
      field.default_value = static_cast<int64_t>(std::llround(column.imputed));
    } else if (field.type == formats::ValueType::kFloat) {
      field.default_value = static_cast<float>(column.imputed);
    }
  }
}

void CopyMeasured(const FeatureSpec& from, FeatureSpec* spec) {
  for (ColumnSpec& column : spec->columns) {
    if (!column.to_measure) continue;
    const ColumnSpec* const known = from.Find(column.name);
    if (known == nullptr || known->to_measure) continue;
    if (WithoutNumbers(*known) == WithoutNumbers(column)) column = *known;
  }
  ApplyImputes(spec);
}

std::string PrintMeasured(const FeatureSpec& spec) {
  std::string text;
  for (const ColumnSpec& column : spec.columns) {
    if (!IsMeasured(column)) continue;
    text += absl::StrFormat("%s %.17g %.17g %.17g\n", column.name, column.mean, column.stddev,
                            column.imputed);
  }
  return text;
}

struct Measure::Column {
  std::string name;
  Normalizer clipped;  // for `impute`
  Normalizer scaled;   // for `normalize`: after log1p, without mean and deviation
  bool needs_median = false;
  RandomStream random;
  data::NumberSums clipped_sums = {};
  data::NumberSums scaled_sums = {};
  std::vector<float> sample = {};  // for the median
  // The values of the rows that are being added.
  std::vector<float> clipped_values = {};
  std::vector<float> scaled_values = {};

  void AddClipped(float value) {
    clipped_sums.Add(value);
    if (!needs_median) return;
    if (sample.size() < kMedianValues) {
      sample.push_back(value);
      return;
    }
    const uint64_t place = random.Below(static_cast<uint64_t>(clipped_sums.count));
    if (place < kMedianValues) sample[place] = value;
  }
};

Measure::Measure(const FeatureSpec& spec) {
  for (const formats::Field& field : spec.schema.fields) {
    const bool is_read = std::ranges::any_of(spec.columns, [&](const ColumnSpec& column) {
      return column.to_measure && column.input == field.name;
    });
    if (!is_read) continue;
    formats::Field& list = schema_.fields.emplace_back(field);
    list.list = true;
    list.has_default = list.mark_missing = false;
  }
  for (const ColumnSpec& column : spec.columns) {
    if (!column.to_measure) continue;
    ColumnSpec plain = column;
    plain.mean = 0;
    plain.stddev = 1;
    ColumnSpec clipped = plain;
    clipped.log1p = false;
    columns_.push_back(std::make_unique<Column>(
        Column{.name = column.name,
               .clipped = Normalizer(schema_, clipped),
               .scaled = Normalizer(schema_, plain),
               .needs_median = column.impute == Impute::kMedian,
               .random = RandomStream(0, RandomPurpose::kSampleValues, columns_.size())}));
  }
}

Measure::~Measure() = default;

absl::Status Measure::Add(const formats::Columns& rows, int* bad_row) {
  for (const auto& column : columns_) {
    absl::Status status = column->clipped.Apply(rows, &column->clipped_values, bad_row);
    if (status.ok()) status = column->scaled.Apply(rows, &column->scaled_values, bad_row);
    if (!status.ok()) return Annotate(status, StrCat("column '", column->name, "'"));
  }
  for (const auto& column : columns_) {
    for (const float value : column->scaled_values) column->scaled_sums.Add(value);
    for (const float value : column->clipped_values) column->AddClipped(value);
  }
  return absl::OkStatus();
}

std::vector<std::string> Measure::Apply(FeatureSpec* spec) const {
  std::vector<std::string> empty;
  for (const auto& measured : columns_) {
    const auto found = std::ranges::find(spec->columns, measured->name, &ColumnSpec::name);
    if (found == spec->columns.end()) continue;
    if (measured->scaled_sums.count == 0) empty.push_back(measured->name);
    if (found->normalize) {
      const double stddev = measured->scaled_sums.stddev();
      found->mean = measured->scaled_sums.mean;
      found->stddev = stddev > kLeastDeviation ? stddev : 1;
    }
    if (found->impute == Impute::kMean) found->imputed = measured->clipped_sums.mean;
    if (found->impute == Impute::kMedian) found->imputed = GetMedian(measured->sample);
    found->to_measure = false;
  }
  ApplyImputes(spec);
  return empty;
}

}  // namespace muster::features
