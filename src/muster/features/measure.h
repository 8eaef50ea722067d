// Measure: numbers of numeric columns that the training data determine: the mean and deviation of
// `normalize: auto`, and what `impute: mean` and `median` put in the place of a missing value
// (docs/spec.md, numeric columns). A first pass over the data finds them before the first step
// (train/input/first_pass.h). They are then part of the spec, which the model folder keeps.
//
// They are computed from the values that are present, after clipping: the mean and the population's
// deviation after log1p too, the imputed number before it. A column whose values are all the same
// has the deviation 1. The median is exact up to kMedianValues values and that of a uniform sample
// of so many (Vitter's algorithm R, with a fixed seed) beyond. The number for an int input is
// rounded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/features/column.h"
#include "muster/formats/columns.h"

namespace muster::features {

inline constexpr size_t kMedianValues = size_t{1} << 20;

// Whether some column has to be measured; its name, "" for none.
std::string FindUnmeasured(const FeatureSpec& spec);

// Whether a column of `spec` has numbers from the training data, measured or not.
bool DependsOnData(const FeatureSpec& spec);

// Gives the inputs of columns with `impute` their defaults, and has missing values of these inputs
// and of those with missing_flag marked (formats::Field::mark_missing). Call it when columns were
// parsed or their numbers changed.
void ApplyImputes(FeatureSpec* spec);

// Takes the numbers of the columns of `from` that are measured there and are otherwise the same.
void CopyMeasured(const FeatureSpec& from, FeatureSpec* spec);

// The measured numbers, exactly, for comparing.
std::string PrintMeasured(const FeatureSpec& spec);

// One owner thread.
class Measure {
 public:
  // Of a valid spec.
  explicit Measure(const FeatureSpec& spec);
  ~Measure();

  // What the columns that are to be measured read. Every field is a list, so that a row without a
  // value is told from one with the default.
  const formats::Schema& schema() const { return schema_; }
  // `rows` are of schema(). INVALID_ARGUMENT for a value that is not finite, of row *bad_row;
  // nothing of these rows was added then.
  absl::Status Add(const formats::Columns& rows, int* bad_row);
  // Sets the numbers of the columns of *spec. Returns the names of columns without any value.
  std::vector<std::string> Apply(FeatureSpec* spec) const;

 private:
  struct Column;

  formats::Schema schema_;
  std::vector<std::unique_ptr<Column>> columns_;
};

}  // namespace muster::features
